/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu.h - a session whose requests this process executes (reddnd/executor), on queues of rnic/plain.h.
 * The client sees the same as from a NIC: the same reply, the same immediates, the same order.
 *
 * In place of instances there are RECVs and room for replies. A request is taken, executed for at most so
 * many work requests in a turn, and its messages are sent; it is done when the last of these has completed.
 * All that a turn does is bounded, so that sessions of many clients can take turns.
 *
 * Thread rules: the functions of the first part are called by one thread, which executes requests
 * (server/executors.h), one turn at a time. All others are called by the thread of the event loop, which has
 * everything else of the session; those before the first turn and after the last one while no turn is taken.
 */
#ifndef SESSION_CPU_H
#define SESSION_CPU_H

#include "reddnd/session/session.h"

/* ---- on the thread that executes -------------------------------------------------------------- */

enum session_cpu_turn {
	SESSION_CPU_BUSY,    /* there was something to do, and may be more */
	SESSION_CPU_IDLE,    /* there was nothing to do, and soon may be */
	SESSION_CPU_RESTING, /* a loop has reached its rate: session_cpu_resting() */
	SESSION_CPU_ASLEEP,  /* an event comes when there is something to do */
	SESSION_CPU_BROKEN,  /* with a verdict; no turn more */
};

/** Takes completions, and executes what there is, up to the limit of a turn. */
enum session_cpu_turn session_cpu_turn(struct session *s, uint64_t now_us);
/** Microseconds until a session that rests goes on; 0: now. */
uint64_t session_cpu_resting(const struct session *s, uint64_t now_us);
/** True once after each turn that the event loop has to look at: there is a verdict or a note, or RECVs are
 * to be posted, or the session falls asleep and what is done has not been counted. */
bool session_cpu_changed(struct session *s);

/* ---- on the thread of the event loop ---------------------------------------------------------- */

/** Makes what the session needs, connected; RECVs are still missing. Errors have been logged. */
int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request);
/** NULL, or why the session in @slot cannot go on, in words; @o: the offload of that name, not disabled. */
const char *session_cpu_obstacle(const struct ledger_slot *slot, const struct offload *o);
/** Goes on with what a daemon before this one made, which is in the slot of the session. -EBADMSG: it cannot
 * be right; -ENOMEM. After an error the queues are as before, and session_cpu_forget() frees the rest. */
int session_cpu_adopt(struct session *s, const struct session_parts *parts, const struct request *request);
void session_cpu_forget(struct session_cpu *c); /* NULL is fine */
/** Its RECVs are posted as rates allow, so the event loop looks at each turn that has done something. Of
 * any session. */
void session_cpu_set_paced(struct session *s, bool paced);
/** The session has joined .first: the rate of its loops is that of all connections. */
void session_cpu_share_loops(struct session *s);
/** It takes and sends nothing more. NULL is fine for these two. */
void session_cpu_stop(struct session_cpu *c);
void session_cpu_free(struct session_cpu *c);

/** Replies end with a SEND, as REDDN_REP_SENDS of the protocol. */
bool session_cpu_sends(const struct session *s);

/** After the last turn: takes the completions that are left, so that session_cpu_done() counts every reply
 * that the client has: one that leaves as soon as it has its reply is faster than the next turn. A verdict
 * that waits for the replies before it waits no longer. */
void session_cpu_settle(struct session *s);
/** Its verdict, if it is broken; else NULL. */
const struct verdict *session_cpu_broken(const struct session *s);
/** True, once: a request exceeds a budget, and goes on. */
bool session_cpu_note(struct session *s, struct verdict *v);
/** Requests that are done, and that the client has sent. */
uint64_t session_cpu_done(const struct session *s);
uint64_t session_cpu_received(const struct session *s);
/** Iterations of its endless loop, of all requests. */
uint64_t session_cpu_iterations(const struct session *s);
/** How request @n, which is done, ended, as long as no RECV has been posted for the next one in its slot. */
struct outcome session_cpu_outcome(const struct session *s, uint64_t n);
/** The first request of which the next function knows: those before it came to a daemon before this one. */
uint64_t session_cpu_timed(const struct session *s);
/** As session_cpu_outcome(): nanoseconds from when it was taken until its reply had completed. */
uint64_t session_cpu_took(const struct session *s, uint64_t n);
/** Posts RECVs up to number @to. 0 or an error of the device, logged. */
int session_cpu_post(struct session *s, uint64_t to);

#endif
