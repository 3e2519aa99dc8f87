/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clients.h - clients that come and go: what the connection manager reports, who is judged by accept.h and
 * waits in arrivals.h, and begins a session.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_CLIENTS_H
#define SERVER_CLIENTS_H

#include "reddnd/server/dispatch.h"

/** With the dispatch as argument. */
extern const struct rnic_cm_ops clients_cm_ops;
extern const struct arrivals_ops clients_arrivals_ops;

#endif
