/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * executors.h - threads that serve sessions whose requests this process executes (session/cpu.h), so that the
 * event loop is not held up.
 *
 * A session stays on one thread, which polls its queues, executes its requests and sends the replies. Tenants
 * take turns there, whatever the number of their sessions, and so do the sessions of a tenant. A session
 * without work is polled for a while (session/cpu.h) and then sleeps until an event; a thread without any
 * sleeps, too. There are no threads before there are sessions.
 *
 * What the rest of the daemon does for such a session (counting, RECVs, verdicts) is done by the event loop,
 * in rounds, as for sessions of the NIC: executors_next() returns those for which there is something to do.
 *
 * Thread rules: all functions are called on the thread of the event loop. After executors_remove() no other
 * thread uses the session.
 */
#ifndef SERVER_EXECUTORS_H
#define SERVER_EXECUTORS_H

#include "reddnd/session/session.h"

#include <systemd/sd-event.h>

enum { EXECUTORS_MAX = 64 };

struct executors;

/** @wanted is called when there is something for executors_next(), once after executors_arm(). Errors have
 * been logged. */
int executors_new(
	struct executors **e, sd_event *event, struct rnic_device *dev, int (*wanted)(void *arg), void *arg);
/** Ends the threads; without sessions. NULL is fine. */
void executors_free(struct executors *e);

/** From now on there are at most so many threads; 0: one for every two CPUs, and 4 at most. Those that there
 * are stay. */
void executors_limit(struct executors *e, unsigned threads);

/** Chooses the thread for the next session: where its completions report to (session_parts.plain_events).
 * -errno, logged. */
int executors_choose(struct executors *e, struct rnic_plain_events **events);
/** @s, which was made with that, is served from now on. -ENOMEM. */
int executors_add(struct executors *e, struct session *s);
/** Fine for a session that is not served. */
void executors_remove(struct executors *e, struct session *s);

/** A session that has gone on (session_count()), or is broken (session_cpu_broken()); NULL: there is none. */
struct session *executors_next(struct executors *e);
/** Asks for a call of @wanted. False: there is something already. */
bool executors_arm(struct executors *e);

#endif
