/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server-impl.h - the server, shared by server.c (its life, and what it is asked and told), door.c (who
 * comes, who is let in, who goes), upkeep.c (what is done for a session when its time has come), rounds.c
 * (what is done for sessions that run) and watch.c (what is done for those with budgets).
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_SERVER_IMPL_H
#define SERVER_SERVER_IMPL_H

#include "reddnd/generation/generation.h"
#include "reddnd/policy/end-reason.h"
#include "reddnd/server/enforcement.h"
#include "reddnd/server/pacer.h"
#include "reddnd/server/server.h"
#include "reddnd/session/session.h"

struct server {
	struct generation *generation; /* what new clients get */
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct master_qp master;
	struct cq_pool cq_pool;
	struct warden warden;
	struct end_reasons end_reasons;
	struct rnic_cm *cm;
	struct session *by_id, *by_qpn;
	TAILQ_HEAD(, session) dirty;
	TAILQ_HEAD(, session) ended;
	TAILQ_HEAD(, session) watched;
	uint64_t next_id, refused, requests, failed, reloads, since;
	struct offload_stats *stats;
	struct tenant *tenants;
	struct pacer pacer;
	uint64_t round_us;
	sd_event *event;
	sd_event_source *cm_source, *queue_source, *async_source, *timer;
};

/* ---- server.c ---- */

/** NULL if there is none. */
struct session *server_find(struct server *sv, uint64_t id);

/* ---- door.c ---- */

/** What the connection manager calls; its argument is the server. */
extern const struct rnic_cm_ops door_ops;

/** The session is over, in words for the log and for its client: nothing is done for it any more.
 * rounds_reap() frees it. */
void door_end(struct server *sv, struct session *s, enum reddn_wire_end how, const char *why);

/* ---- upkeep.c ---- */

/** @s has been accepted: from now on it has a timer. -errno of sd-event, logged. */
int upkeep_begin(struct server *sv, struct session *s);
/** The connection is complete: an idle session has no timer any more, unless its tenant has an idle timeout.
 */
void upkeep_established(struct session *s);
/** At most @rate requests per second until @until_us. */
void upkeep_throttle(struct server *sv, struct session *s, uint64_t rate, uint64_t until_us);
/** The limits of a session from now on. A throttle goes on. */
void upkeep_limit(struct server *sv, struct session *s, const struct server_limit *limit);
/** After its tenant's idle_timeout has changed, or may have. */
void upkeep_changed(struct server *sv, struct session *s);
/** It is over: the timer goes. */
void upkeep_end(struct session *s);

/* ---- rounds.c ---- */

/** The descriptors and the timer of @sv that have to do with its queues. -errno of sd-event. */
int rounds_attach(struct server *sv);
void rounds_detach(struct server *sv);

/** Of the pacer: counts what @s has done. @arg: the server. */
void rounds_count(void *arg, struct session *s);
void rounds_count_all(struct server *sv);

/** Does what follows from @v. */
void rounds_judge(struct server *sv, struct session *s, const struct verdict *v);

/** Takes the completions that are there: how many. */
unsigned rounds_drain(struct server *sv);
/** That, and arms again what is finished, and frees the sessions that are over. */
unsigned rounds_collect(struct server *sv);
/** Frees the sessions that are over. */
void rounds_reap(struct server *sv);

/* ---- watch.c: sessions with budgets, while they have requests outstanding; a session that rests costs
 * nothing ---- */

/** A session may have been sent a request: it is watched if it has budgets. */
void watch_begin(struct server *sv, struct session *s);
/** It is over. */
void watch_end(struct server *sv, struct session *s);
/** Of the warden: looks at those that are watched. @arg: the server. */
void watch_look(void *arg, uint64_t now_us);

#endif
