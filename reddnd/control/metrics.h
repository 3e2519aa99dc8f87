/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.h - the daemon's counters as OpenMetrics text: by offload, never by client or key.
 */
#ifndef CONTROL_METRICS_H
#define CONTROL_METRICS_H

#include "reddnd/server/stats.h"

/** Text that ends with "# EOF\n"; the caller frees it. NULL: no memory. */
char *metrics_text(const struct stats *stats);

#endif
