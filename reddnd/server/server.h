/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - serves a catalog on one device or several: its regions, its offloads, the sessions of clients,
 * and all work for them that is off the path of their requests.
 *
 * It opens, replaces and closes; dispatch.h beneath it handles events, and operator.h carries out orders.
 *
 * Runs in an sd-event loop; what may take long is done by threads below it. When its last device
 * fails, the loop ends with an error. Regions that cannot be served are tried again every few seconds.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/server/configuration.h"
#include "reddnd/server/events.h"

#include <systemd/sd-event.h>

struct server;

struct server_ops {
	/** Reload @number is over, and all before it: 0, or an error, with what was logged in @errors, lines
	 * of text. */
	void (*reloaded)(void *arg, uint64_t number, int error, const char *errors);
	/** The same for a file that was handed over. A reload before it may go on. */
	void (*taken)(void *arg, uint64_t number, int error, const char *errors);
};

/** Borrowed, for as long as the server exists. */
struct server_parts {
	sd_event *event;
	const char *config; /* path, for reloads */
	const struct server_ops *ops;
	void *arg;
};

/** Takes what @begin has, whatever the outcome. Listens when this returns 0. Errors have been logged. */
int server_new(struct server **server, const struct server_parts *parts, struct configuration *begin);
/** All that the catalog in force asks for is there: the next daemon can rely on it. */
void server_trust_catalog(struct server *server);
/** Disconnects every client and frees every object. */
void server_free(struct server *server);
/** Ends this process with EX_TEMPFAIL, and leaves all sessions as they are to the next daemon, if a service
 * manager keeps the descriptors for it. */
void server_leave(struct server *server) __attribute__((noreturn));
/** The same, because the catalog in force cannot be served: the next daemon uses the one before, if it can.
 */
void server_distrust_catalog(struct server *server) __attribute__((noreturn));
bool server_has_sessions(const struct server *server);

/**
 * Begins to replace the catalog in force by the configuration as it is now: new clients get it; sessions keep
 * the one they began with. All of it is opened and checked first, while clients are served: after an error,
 * which has been logged, nothing has changed. Returns the number of the reload that ops->reloaded() gets.
 */
uint64_t server_reload(struct server *server);

/** The catalog in force. Valid until the next reload. */
const struct catalog *server_catalog(const struct server *server);
/** What happened to clients. Valid as long as the server. */
struct events *server_events(struct server *server);

#endif
