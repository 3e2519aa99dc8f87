/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - the metrics by HTTP: GET /metrics and nothing else, for one address and port.
 *
 * Who can reach the address may read: keep it local, or behind something that asks who they are. A client
 * that is silent is disconnected, and so is one beyond LISTENER_PEERS_MAX.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef CONTROL_LISTENER_H
#define CONTROL_LISTENER_H

#include "reddnd/server/server.h"

enum { LISTENER_PEERS_MAX = 16, LISTENER_IDLE_S = 10 };

struct listener;

/** Errors have been logged. @server must outlive it. */
int listener_new(
	struct listener **listener, const struct catalog_listen *at, struct server *server, sd_event *event);
void listener_free(struct listener *listener);

#endif
