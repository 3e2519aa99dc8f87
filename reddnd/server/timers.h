/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timers.h - when something is due for a session. A timer for each: the client completes the connection in
 * time, is not idle for too long, and a throttle ends. A session that waits for none of these has no timer
 * set.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_TIMERS_H
#define SERVER_TIMERS_H

#include "reddnd/server/enforcement.h"
#include "reddnd/session/session.h"

struct timers {
	sd_event *event;          /* borrowed */
	uint64_t connect_timeout; /* us; of the configuration in force */
	void (*due)(void *arg, struct session *s);
	void *arg;
};

/** Gives @s a timer, which calls t->due. @t must outlive it. -errno of sd-event, logged. */
int timers_begin(struct timers *t, struct session *s);
void timers_end(struct session *s);

/** Its idle timeout may have changed: counts idleness from now on. */
void timers_restart(const struct timers *t, struct session *s);

/** What must happen now. Counters of @s are up to date. timers_set() afterwards, if it goes on. */
void timers_check(const struct timers *t, struct session *s, uint64_t now_us, struct action *action);
/** Sets the timer of @s for what comes next. */
void timers_set(const struct timers *t, struct session *s);

/*
 * Sessions of offloads with a time budget or a loop budget. A session is watched while it has requests
 * outstanding; one that rests costs nothing. A loop without a bound gets its credits at these times.
 */

struct budgets {
	TAILQ_HEAD(, session) watched;
	sd_event_source *timer;
	uint64_t period_us; /* to the next check; 0: none is due */
	void (*due)(void *arg);
	void *arg;
};

/** @due: check every session that is watched. -errno of sd-event. */
int budgets_init(struct budgets *b, sd_event *event, void (*due)(void *arg), void *arg);
void budgets_deinit(struct budgets *b); /* fine on one that is all zero */

/** A request of @s may have come. True: the session is watched from now on; check it at once. */
bool budgets_begin(struct budgets *b, struct session *s);
/** After a check: the session rests, or is due for another check within a part of its budget. */
void budgets_continue(struct budgets *b, struct session *s);
/** Its loop got credits: those that got none have theirs first, next time. */
void budgets_fed(struct budgets *b, struct session *s);
/** Its session is over. */
void budgets_end(struct budgets *b, struct session *s);

#endif
