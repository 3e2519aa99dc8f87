/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listener.h - serves the metrics by HTTP: GET and HEAD of /metrics, at one address and port, as OpenMetrics
 * or in the text format 0.0.4 of Prometheus, which the client prefers.
 *
 * Every client that can reach the address may read: keep it local, or behind a proxy that authenticates.
 * Silent clients are disconnected. So is, when LISTENER_PEERS_MAX are connected and one more comes, the one
 * that is connected for the longest time: a scrape takes milliseconds, and slow clients keep nobody out.
 *
 * A thread of its own speaks HTTP, so that readers cost the event loop at most one text in 200 ms, however
 * many they are; a text is at most that old.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef CONTROL_LISTENER_H
#define CONTROL_LISTENER_H

#include "reddnd/server/server.h"

enum { LISTENER_PEERS_MAX = 64, LISTENER_IDLE_S = 10 };

struct listener;

/** Errors have been logged. @server must outlive it. */
int listener_new(
	struct listener **listener, const struct catalog_listen *at, struct server *server, sd_event *event);
void listener_free(struct listener *listener);

#endif
