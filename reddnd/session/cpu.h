/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu.h - a session whose requests this process executes (reddnd/executor), on a queue pair that verbs made.
 * The client sees the same as from a NIC: the same reply, the same immediates, the same order.
 *
 * In place of instances there are RECVs and room for replies. A request is taken, executed for at most so
 * many work requests in a turn, and its messages are sent; it is done when the last of these has completed.
 * All that a turn does is bounded, so that sessions of many clients can take turns.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_CPU_H
#define SESSION_CPU_H

#include "reddnd/session/session.h"

/** Makes what the session needs, connected; RECVs are still missing. Errors have been logged. */
int session_cpu_begin(struct session *s, const struct session_parts *parts, const struct request *request);
/** It takes and sends nothing more. NULL is fine for these two. */
void session_cpu_stop(struct session_cpu *c);
void session_cpu_free(struct session_cpu *c);

enum session_cpu_turn {
	SESSION_CPU_BUSY,   /* there is more to do, or soon will be */
	SESSION_CPU_ASLEEP, /* an event comes when there is */
	SESSION_CPU_BROKEN, /* with a verdict */
};

/** Takes completions, and executes what there is, up to the limit of a turn. progress.done may grow. */
enum session_cpu_turn session_cpu_turn(struct session *s, uint64_t now_us, struct verdict *v);

/** Replies end with a SEND, as REDDN_REP_SENDS of the protocol. */
bool session_cpu_sends(const struct session *s);

/** Requests that the client has sent. */
uint64_t session_cpu_received(const struct session *s);
/** Iterations of its endless loop, of all requests. */
uint64_t session_cpu_iterations(const struct session *s);
/** How request @n ended, as long as its slot is not used again. */
struct outcome session_cpu_outcome(const struct session *s, uint64_t n);
/** Posts RECVs up to number @to. 0 or an error of the device, logged. */
int session_cpu_post(struct session *s, uint64_t to);

#endif
