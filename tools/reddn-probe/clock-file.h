/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock-file.h - what was measured as a file of costs (costs/costs.h), which predictions are made from.
 */
#ifndef TOOLS_REDDN_PROBE_CLOCK_FILE_H
#define TOOLS_REDDN_PROBE_CLOCK_FILE_H

#include "tools/reddn-probe/measure.h"

/**
 * Measures @dev, and @other if it is not NULL, and writes the file @path. The exit status: 0, or that of an
 * error, which has been reported; EX_DATAERR if the file is written, and its figures do not fit together.
 */
int clock_file_make(const char *path, struct rnic_device *dev, struct rnic_device *other);

#endif
