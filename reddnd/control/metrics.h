/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.h - the daemon's counters as OpenMetrics text: by offload, never by client or key.
 */
#ifndef CONTROL_METRICS_H
#define CONTROL_METRICS_H

#include "reddnd/server/server.h"

/** Text that ends with "# EOF\n", to be freed; NULL when there is no memory. */
char *metrics_text(struct server *server);

#endif
