/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - everything a catalog asks for, served on one device: regions, offloads, the sessions of clients, and
 * what has to be done for them off the path of their requests.
 *
 * Runs in an sd-event loop; no threads. When the device fails, the loop ends with an error.
 */
#ifndef SESSION_SERVER_H
#define SESSION_SERVER_H

#include "reddnd/catalog/catalog.h"

#include <systemd/sd-event.h>

struct server;

struct server_status {
	unsigned sessions;
	uint64_t sessions_total, refused, requests;
	uint64_t arena_used, arena_size;
};

/** @catalog must outlive the server. Listens when this returns 0. Errors have been logged. */
int server_new(struct server **server, const struct catalog *catalog, sd_event *event);
/** Disconnects every client and frees every object. */
void server_free(struct server *server);

void server_status(const struct server *server, struct server_status *status);
/** One line per session into the log. */
void server_log_sessions(const struct server *server);

#endif
