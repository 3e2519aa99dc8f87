/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - serves a catalog on one device or several: its regions, its offloads, the sessions of clients,
 * and all work for them that is off the path of their requests.
 *
 * server.c opens and closes, and carries out orders; dispatch.h beneath it handles events.
 *
 * Runs in an sd-event loop; what may take long is done by threads below it. When its last device
 * fails, the loop ends with an error. Regions that cannot be served are tried again every few seconds.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/generation/region.h"
#include "reddnd/server/configuration.h"
#include "reddnd/server/events.h"
#include "reddnd/server/stats.h"

#include <systemd/sd-event.h>

struct server;

struct server_ops {
	/** Reload @number is over: 0, or an error, with what was logged in @errors, lines of text. */
	void (*reloaded)(void *arg, uint64_t number, int error, const char *errors);
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

/** Brings all counters up to date and takes a snapshot of them: stats_free(). NULL: no memory. */
struct stats *server_snapshot(struct server *server);
/** Of a snapshot only the state of the daemon and of its devices; nothing is to be freed. Much faster where
 * there are many sessions. */
void server_overview(struct server *server, struct stats *stats);
/** The same, for those who do it again and again whether or not anybody reads it: requests that no completion
 * reports are those of some sessions only, and of others at the next call. Returns the calls until each has
 * been looked at; at least 1. */
unsigned server_glance(struct server *server, struct stats *stats);

/** Limits to change. Rates of 0: none. */
struct server_limit {
	bool has_rate, has_bytes; /* the others stay as they are */
	uint64_t rate, burst;     /* of requests */
	uint64_t bytes_rate;      /* of replies */
};

/** In force until the next reload of the limits of its tenant. -ENOENT: there is no such session or tenant.
 */
int server_limit_session(struct server *server, uint64_t id, const struct server_limit *limit);
int server_limit_tenant(struct server *server, const char *name, const struct server_limit *limit);

/**
 * User @by hands the file @fd, which stays the caller's, over as region @name: sessions that begin from then
 * on get it. The number of the reload that brings it into force, as of server_reload(), is in @number.
 * -ENOENT: there is no region of that name that is handed over; -EPERM: @by is neither its owner nor root;
 * -EINVAL, and the reason in
 * @why: the file cannot be served, and nothing has changed.
 */
int server_hand_over(
	struct server *server, const char *name, int fd, uid_t by, uint64_t *number, char why[REGION_WHY]);
/** A descriptor of the file that was handed over as region @name, for its owner @by: the caller's to close.
 * -ENOENT: there is none, and -EPERM, as above. */
int server_give_back(struct server *server, const char *name, uid_t by);

/** Ends session @id. -ENOENT: there is none. */
int server_kick(struct server *server, uint64_t id);

#endif
