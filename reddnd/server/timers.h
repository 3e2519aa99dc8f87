/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timers.h - a timer for each session: the client completes the connection in time, is not idle for too long,
 * and a throttle ends. A session that waits for none of these has no timer set.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_TIMERS_H
#define SERVER_TIMERS_H

#include "reddnd/server/action.h"
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

#endif
