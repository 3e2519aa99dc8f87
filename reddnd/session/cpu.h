/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu.h - a session whose requests this process executes (reddnd/executor), on queues of rnic/plain.h.
 * The client sees the same as from a NIC: the same reply, the same immediates, the same order.
 *
 * In place of instances there are RECVs and room for replies. A request is taken, executed for at most so
 * many work requests in a turn (cpu-turn.c), and its messages are sent; it is done when the last of these has
 * completed. Threads (cpu-threads.h) take the turns of all sessions.
 *
 * Thread rules: one thread, that of the event loop, which has everything of the session but its turns; begin,
 * settle and free are called while no turn is taken.
 */
#ifndef SESSION_CPU_H
#define SESSION_CPU_H

#include "reddnd/session/session.h"

/** Makes what the session needs, connected; RECVs are still missing. Errors have been logged. */
int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request);
/** The session has joined .first: the rate of its loops is that of all connections. */
void session_cpu_share_loops(struct session *s);
void session_cpu_free(struct session_cpu *c); /* NULL is fine */

/** After the last turn: takes the completions that are left, so that .count() of its engine finds every
 * reply that the client has: one that leaves as soon as it has its reply is faster than the next turn. A
 * verdict that waits for the replies before it waits no longer. */
void session_cpu_settle(struct session *s);
/** Its verdict, if it is broken; else NULL. */
const struct verdict *session_cpu_broken(const struct session *s);
/** True, once: a request exceeds a budget, and goes on. */
bool session_cpu_note(struct session *s, struct verdict *v);

/* Calls of engine.h */

uint64_t session_cpu_received(const struct session *s, uint64_t to);
/** If paced, the event loop looks at each turn that has done something. */
void session_cpu_set_paced(struct session *s, bool paced);

#endif
