/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stores.h - gives the stores that this daemon writes (generation/held-store.h) their turns, and their
 * graces. A grace of a store is over when all requests are over that had begun when it began: those of each
 * session that has the store, whoever executes them, and gets as well, of all devices and generations. Then
 * nobody reads any more what nothing names since before.
 *
 * A request that is not over holds all graces of its store up, and with them what is replaced, deleted or
 * moved there. So a session for which a grace has waited two seconds, or its "time_budget" if that is longer,
 * is judged as one that exceeds a time budget. Time in which this process was held up does not count: so
 * may have been what executes the request.
 *
 * While this daemon has a store, the service manager has a copy of the descriptor with the lock of its
 * writer: so nobody else writes it when this one has died and queues go on to publish. The next one goes on
 * with the lock.
 *
 * A turn follows soon when a session has changed something. While a grace lasts, sessions that raise no
 * events are looked at in steps. If the steps take long, because there are many sessions, there are fewer of
 * them. A store that nobody changes costs nothing, unless it has records that expire.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_STORES_H
#define SERVER_STORES_H

#include "reddnd/generation/generation.h"
#include "reddnd/session/session.h"

#include <systemd/sd-event.h>

struct served_store;

struct stores_ops {
	/** Takes the completions that are there, of all devices: sessions may end. */
	void (*drain)(void *arg);
	/** Calls @visit with each connection of each session. */
	void (*each)(void *arg, void (*visit)(void *to, struct session *s), void *to);
	/** The connection with that number; NULL: it is over. */
	struct session *(*find)(void *arg, uint64_t id);
	/** A request of @s has not ended since a grace of the store of region @region began, @us ago. */
	void (*late)(void *arg, struct session *s, const char *region, uint64_t us);
	/** Counts what is over of @s. */
	void (*count)(void *arg, struct session *s);
	/** @s waited for extents, and there may be some. */
	void (*rearm)(void *arg, struct session *s);
};

struct stores {
	sd_event_source *timer;
	bool due; /* it is set, for a turn that follows soon */
	uint64_t pause_us, not_before;
	uint64_t patience_us; /* for which a grace waits for a session */
	SLIST_HEAD(, served_store) all;
	uint64_t served; /* so many, which gives each a number */
	const struct stores_ops *ops;
	void *arg;
};

/** -errno of sd-event. */
int stores_init(struct stores *st, sd_event *event, const struct stores_ops *ops, void *arg);
/** After all sessions. Fine on one that is all zero. */
void stores_deinit(struct stores *st);

/** @g is in force: its stores have turns from now on. */
void stores_serve(struct stores *st, const struct generation *g);
/** There may be something to do: a session has changed something, or waits for extents. */
void stores_wake(struct stores *st);
/** A turn now: the first one is before clients are heard. */
void stores_turn(struct stores *st);

#endif
