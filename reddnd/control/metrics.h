/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.h - counters of the daemon as OpenMetrics text: by offload and tenant, never by client or key.
 */
#ifndef CONTROL_METRICS_H
#define CONTROL_METRICS_H

#include "reddnd/server/stats.h"

/** Text that ends with "# EOF\n"; the caller frees it. NULL: no memory. */
char *metrics_text(const struct stats *stats);

/** The same in the text format 0.0.4 of Prometheus, where a counter is a family with the name of its samples.
 */
char *metrics_prometheus(const char *openmetrics);

#endif
