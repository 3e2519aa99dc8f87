/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-turn.h - a turn of a session whose requests this process executes (cpu.h). All that a turn does is
 * bounded, so that sessions of many clients can take turns. Private to cpu*.c.
 *
 * Thread rules: one thread, which executes requests; one turn at a time.
 */
#ifndef SESSION_CPU_TURN_H
#define SESSION_CPU_TURN_H

#include "reddnd/session/session.h"

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

#endif
