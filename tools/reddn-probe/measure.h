/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * measure.h - the microbenchmarks of the RedN paper (figures 7 and 8, tables 3 and 4) on a device, by the
 * timestamps of completions, and the clock file that has their figures.
 */
#ifndef TOOLS_REDDN_PROBE_MEASURE_H
#define TOOLS_REDDN_PROBE_MEASURE_H

#include "reddnd/rnic/device.h"

/**
 * Measures @dev; with @other, which may be NULL, between their ports, which are connected back to back or by
 * a switch. Writes the figures to the file @path, from which predictions are made (costs/costs.h). The exit
 * status: 0, or that of an error, which has been reported; EX_DATAERR: the file was written, but the
 * measurements are inconsistent.
 */
int measure_to_file(const char *path, struct rnic_device *dev, struct rnic_device *other);

#endif
