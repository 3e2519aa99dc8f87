/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dispatch.h - the events of one device, and what follows from them. What devices have in common is above
 * them, in shared.h. Each event leads downwards: to
 * connect.h, collect.h, timers.h or pacer.h. These report what they found;
 * enforcement.h decides what follows, and actions.h does it. Only actions.h ends sessions, and only
 * collect_reap() frees them. inheritance.h brings in those of a daemon before this one.
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

#include "reddnd/generation/inspection.h"
#include "reddnd/server/connect.h"
#include "reddnd/server/shared.h"
#include "reddnd/server/timers.h"
#include "reddnd/session/cpu-threads.h"

/** collect.h */
struct completions {
	struct cq_pool pool;
	struct session *by_qpn;
	TAILQ_HEAD(, session) finished; /* with instances to arm */
	TAILQ_HEAD(, session) watched;  /* recycled ones with extents that are at work */
	unsigned taken;                 /* in this round */
	unsigned used;                  /* eighths: most of session_used() in this round */
	uint64_t round_us;              /* from one round to the next */
};

struct dispatch {
	struct rnic_cm *cm;
	struct rnic_device *dev;
	struct shared *shared;
	sd_event_source *cm_source, *queue_source, *async_source, *round_timer;
	struct session *sessions; /* live.h: by_id */
	unsigned nsessions;       /* one of several connections is one */
	unsigned nolder;          /* connections whose offload is not of the generation for new ones */
	TAILQ_HEAD(, session) ended;
	struct session_parts parts;          /* of new sessions */
	const struct generation *generation; /* for new clients */
	struct connects connects;
	struct completions completions;
	struct timers timers;
	struct budgets budgets;
	struct cpu_threads *threads;
	int (*lost)(void *arg);
	bool (*retired)(void *arg);
	void *arg;
};

/** Borrowed for as long as the dispatch exists. */
struct dispatch_parts {
	sd_event *event;
	struct rnic_cm *cm; /* made with connect_cm_ops and the dispatch as argument */
	struct rnic_device *dev;
	unsigned device; /* its number (generation/tenant.h) */
	struct rnic_arena *arena;
	struct worker *registrar; /* of regions; must be freed before the dispatch */
	struct shared *shared;
	int (*lost)(void *arg); /* the device is lost; a negative value ends the event loop */
	/* A client wants a table that was replaced. True: it is being opened again, and connects_go_on()
	 * follows */
	bool (*retired)(void *arg);
	void *arg;
};

/** @d: all zero. Errors have been logged; dispatch_deinit() cleans up after them, too. */
int dispatch_init(struct dispatch *d, const struct dispatch_parts *parts);
/** Ends every session. Fine on one that is all zero. */
void dispatch_deinit(struct dispatch *d);

/** Before dispatch_serve() on any device: sessions of stores in whose place @generation has others end. What
 * they answered later would be older than what clients of the others have put. */
void dispatch_end_stores(struct dispatch *d, const struct generation *generation);
/** New clients get @generation from now on. */
void dispatch_serve(struct dispatch *d, const struct generation *generation);
/** @catalog is in force from now on; limits of sessions and timeouts may have changed. */
void dispatch_use(struct dispatch *d, const struct catalog *catalog);
/** The limits of @tenant, or of any tenant if it is NULL, have changed. */
void dispatch_tenant_changed(struct dispatch *d, const struct tenant *tenant);

/** The generation in force has opened its files anew, and all files have been looked at since: sessions of a
 * table that another file has replaced, and which do not learn that from the table, end. */
void dispatch_end_replaced(struct dispatch *d);

/** Adds the regions of sessions whose offload is not of the generation in force. */
void dispatch_inspect(struct dispatch *d, struct inspection *in);
/** Sessions that use regions that are bad end, and some of those of tables that were replaced a while ago.
 * True: there are more of these. */
bool dispatch_end_bad(struct dispatch *d);

/** Judges the budgets of @s, and gives its loop the credits that it may have. */
void dispatch_check_budget(struct dispatch *d, struct session *s, uint64_t now_us);

/** The device is lost: ends its sessions, and looks for no more events of it. */
void dispatch_lose(struct dispatch *d);

/** Brings the counters of all sessions up to date. */
void dispatch_count(struct dispatch *d);

#endif
