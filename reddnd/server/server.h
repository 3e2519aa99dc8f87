/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - everything a catalog asks for, served on one device: regions, offloads, the sessions of clients,
 * and what has to be done for them off the path of their requests.
 *
 * Runs in an sd-event loop; no threads. When the device fails, the loop ends with an error.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "reddnd/catalog/catalog.h"

#include <systemd/sd-event.h>

struct server;
struct generation;
struct tenant;
struct warden;

struct server_status {
	const char *device;
	uint64_t uptime_us;
	unsigned sessions;
	uint64_t failed; /* sessions that ended because of an error or a broken rule */
	uint64_t sessions_total, refused, requests, reloads;
	uint64_t arena_used, arena_size;
};

/** Takes @catalog, whatever the outcome. Listens when this returns 0. Errors have been logged. */
int server_new(struct server **server, struct catalog *catalog, sd_event *event);
/** Disconnects every client and frees every object. */
void server_free(struct server *server);

/**
 * Puts @catalog, which it takes in any case, in the place of the one in use: new clients get it; sessions
 * keep what they began with. All of it is opened and checked first: on any error, which has been logged,
 * nothing has changed.
 */
int server_reload(struct server *server, struct catalog *catalog);

void server_status(struct server *server, struct server_status *status);
/** What new clients get. Valid until the next reload. */
const struct generation *server_generation(struct server *server);

struct server_session {
	uint64_t id;
	const char *peer, *tenant, *offload;
	bool current; /* the offload is of the configuration in force */
	unsigned depth, instances;
	uint64_t queue_bytes, age_us, requests;
	uint64_t rate, burst; /* rate 0: no limit of its own */
	uint64_t bytes_rate;  /* the same */
	bool recycled;        /* then what became of requests cannot be seen: no hits, misses, bytes_out */
	uint64_t hits, misses, wqes, bytes_in, bytes_out;
	uint64_t iterations;      /* of a loop without a bound */
	const uint64_t *verdicts; /* VERDICT_KINDS */
};

/** Calls @fn for each session, the oldest first. */
void server_each_session(
	struct server *server, void (*fn)(void *arg, const struct server_session *session), void *arg);

/** All tenants that there are, to walk by their hh: those configured, and those with sessions from before. */
const struct tenant *server_tenants(struct server *server);

/** Limits to change; those that are not said stay. Rates of 0: none. */
struct server_limit {
	bool says_rate, says_bytes;
	uint64_t rate, burst; /* of requests */
	uint64_t bytes_rate;  /* of replies */
};

/** From now on, until the next reload of its tenant's limits. -ENOENT if there is no such session or tenant.
 */
int server_limit_session(struct server *server, uint64_t id, const struct server_limit *limit);
int server_limit_tenant(struct server *server, const char *name, const struct server_limit *limit);
/** Its events are the audit. Valid as long as the server. */
struct warden *server_warden(struct server *server);

/** Ends session @id. -ENOENT if there is none. */
int server_kick(struct server *server, uint64_t id);

#endif
