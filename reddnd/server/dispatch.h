/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dispatch.h - the events of the server, and what follows from them. Each event leads downwards: to accept.h,
 * arrivals.h, completions.h, timers.h, budgets.h, executors.h or pacer.h. These report what they found;
 * enforcement.h decides what follows. Only dispatch_end() ends sessions, and only dispatch_reap() frees them.
 *
 * What every event keeps to:
 * - completions are taken first: an error of a reply explains the flushed RECVs that raise an event, and a
 *   budget is judged again after what was answered meanwhile has been counted;
 * - a session is stopped before it is destroyed, and its last completions are taken before its QPN is free;
 * - RECVs are posted (pacer.h) after instances have been armed.
 *
 * Thread rules: one thread, that of the event loop. Requests that the CPU executes are executed by others.
 */
#ifndef SERVER_DISPATCH_H
#define SERVER_DISPATCH_H

#include "reddnd/server/accept.h"
#include "reddnd/server/accounting.h"
#include "reddnd/server/arrivals.h"
#include "reddnd/server/budgets.h"
#include "reddnd/server/completions.h"
#include "reddnd/server/events.h"
#include "reddnd/server/executors.h"
#include "reddnd/server/pacer.h"
#include "reddnd/server/record.h"
#include "reddnd/server/timers.h"
#include "reddnd/session/spares.h"

struct dispatch {
	struct rnic_cm *cm;
	struct rnic_device *dev;
	sd_event_source *cm_source, *queue_source, *async_source, *round_timer;
	struct session *sessions;  /* by_id */
	struct session *by_queues; /* the same */
	TAILQ_HEAD(, session) ended;
	struct events *events;
	struct accounting accounting;
	struct record *record;
	struct refusals refusals;
	sd_event_source *unlisted_timer;
	bool reports_unlisted; /* soon */
	struct acceptor acceptor;
	struct arrivals arrivals;
	struct completions completions;
	struct pacer pacer;
	struct timers timers;
	struct budgets budgets;
	struct spares spares;
	struct executors *executors;
};

/** Borrowed for as long as the dispatch exists. */
struct dispatch_parts {
	sd_event *event;
	struct rnic_cm *cm; /* made with dispatch_cm_ops and the dispatch as argument */
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct worker *registrar; /* of regions; must be freed before the dispatch */
	struct events *events;
	struct record *record;
};

extern const struct rnic_cm_ops dispatch_cm_ops;

/** @d: all zero. Errors have been logged; dispatch_deinit() cleans up after them, too. */
int dispatch_init(struct dispatch *d, const struct dispatch_parts *parts);
/** Refuses clients that still wait; jobs of the registrar may be left. Fine on one that is all zero. */
void dispatch_end_arrivals(struct dispatch *d);
/** Ends every session. Fine on one that is all zero. */
void dispatch_deinit(struct dispatch *d);

/** @s was taken over from a daemon before this one. All that go on come first, then dispatch_serve_adopted():
 * completions of any of them may be waiting. */
void dispatch_adopt(struct dispatch *d, struct session *s);
/** Serves the sessions that were taken over. -errno of sd-event. */
int dispatch_serve_adopted(struct dispatch *d);
/** Session @number of a daemon before this one, of a client with @address, is over: remembers why. */
void dispatch_end_heir(struct dispatch *d, uint64_t number, const struct end_reason_query *query,
	const uint8_t address[16], const char *peer, const char *why);

/** New clients get @generation from now on. */
void dispatch_serve(struct dispatch *d, const struct generation *generation);
/** @catalog is in force from now on; limits of sessions and timeouts may have changed. */
void dispatch_use(struct dispatch *d, const struct catalog *catalog);
/** The limits of @tenant, or of any tenant if it is NULL, have changed. */
void dispatch_tenant_changed(struct dispatch *d, const struct tenant *tenant);
/** The limits of @s have changed. */
void dispatch_limits_changed(struct dispatch *d, struct session *s);

/** Looks if files of regions have been cut. Sessions that use them end. */
void dispatch_check_regions(struct dispatch *d);

/** NULL: there is no such session. */
struct session *dispatch_find(const struct dispatch *d, uint64_t id);
/** Ends @s; nothing is done for it after this. dispatch_reap() frees it. A session that is over already stays
 * as it is. */
void dispatch_end(struct dispatch *d, struct session *s, enum reddn_wire_end reason, const char *text);
/** Frees the sessions that are over. */
void dispatch_reap(struct dispatch *d);

/** Brings the counters of all sessions up to date. */
void dispatch_count(struct dispatch *d);

#endif
