/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-threads.h - threads that serve sessions whose requests this process executes (cpu.h), so that the
 * event loop is not held up.
 *
 * A session stays on one thread, which polls its queues, executes its requests and sends the replies. Tenants
 * take turns there, whatever the number of their sessions, and so do the sessions of a tenant. A session
 * without work is polled for a while (cpu.h) and then sleeps until an event; a thread without any
 * sleeps, too. There are no threads before there are sessions.
 *
 * What the rest of the daemon does for such a session (counting, RECVs, verdicts) is done by the event loop,
 * in rounds, as for sessions of the NIC: cpu_threads_next() returns those for which there is something to do.
 *
 * Thread rules: all functions are called on the thread of the event loop. After cpu_threads_remove() no other
 * thread uses the session.
 */
#ifndef SESSION_CPU_THREADS_H
#define SESSION_CPU_THREADS_H

#include "reddnd/rnic/plain.h"

#include <systemd/sd-event.h>

enum { CPU_THREADS_MAX = 64 };

struct cpu_threads;
struct session;

/** @wanted is called when there is something for cpu_threads_next(), once after cpu_threads_arm(). Errors
 * have been logged. */
int cpu_threads_new(struct cpu_threads **e, sd_event *event, struct rnic_device *dev,
	int (*wanted)(void *arg), void *arg);
/** Ends the threads; without sessions. NULL is fine. */
void cpu_threads_free(struct cpu_threads *e);

/** From now on there are at most so many threads; 0: one for every two CPUs, and 4 at most. Those that there
 * are stay. */
void cpu_threads_limit(struct cpu_threads *e, unsigned threads);

/** Chooses the thread for the next session: where its completions report to. -errno, logged. @e NULL:
 * whoever calls takes the turns. */
int cpu_threads_choose(struct cpu_threads *e, struct rnic_plain_events **events);
/** @s, which was made with that, is served from now on. -ENOMEM. */
int cpu_threads_add(struct cpu_threads *e, struct session *s);
/** Fine for a session that is not served. */
void cpu_threads_remove(struct cpu_threads *e, struct session *s);

/** A session that has gone on (session_count()), or is broken (session_cpu_broken()); NULL: there is none. */
struct session *cpu_threads_next(struct cpu_threads *e);
/** Asks for a call of @wanted. False: there is something already. */
bool cpu_threads_arm(struct cpu_threads *e);

#endif
