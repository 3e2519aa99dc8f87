/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - serves the metrics by HTTP: GET /metrics and nothing else, at one address and port.
 *
 * Every client that can reach the address may read: keep it local, or behind a proxy that authenticates.
 * Silent clients, and those beyond LISTENER_PEERS_MAX, are disconnected.
 *
 * A thread of its own speaks HTTP, so that readers cost the event loop at most one text in 200 ms, however
 * many they are; a text is at most that old.
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
