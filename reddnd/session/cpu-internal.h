/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-internal.h - the state of a session whose requests this process executes (cpu.h), its memory, and its
 * turns. All that a turn does is bounded, so that sessions of many clients can take turns. Private to cpu*.c.
 *
 * Thread rules: turns are taken by one thread, which executes requests; one at a time.
 */
#ifndef SESSION_CPU_INTERNAL_H
#define SESSION_CPU_INTERNAL_H

#include "reddnd/executor/executor.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/session.h"

#include <pthread.h>

enum {
	TURN_WQES = 4000,  /* some 100 us */
	AWAKE_MAX_US = 50, /* without work, before it sleeps: an event takes longer than that */
};

/* Of the loops of a session's connections, which different threads may execute */
struct loops {
	pthread_mutex_t lock;
	struct rate rate; /* of work requests */
};

/* Written before .received is, and then before .done is */
struct cpu_request {
	uint64_t ns; /* when it was taken; once it is done, how long it took */
	struct outcome outcome;
};

struct session_cpu {
	struct rnic_plain *queue;
	struct cpu_threads *threads;      /* may be NULL */
	struct rnic_plain_events *events; /* of the thread that serves it */
	struct executor *executor;
	struct layouts_cpu layout;
	struct cpu_request *requests; /* by slot */
	/* for the event loop */
	_Atomic(uint64_t) received, done;
	atomic_ullong iterations;
	atomic_bool broken;
	struct verdict verdict; /* of that; written before it is */
	atomic_bool notes;      /* there is a note; the event loop takes it */
	atomic_uint batch;      /* requests that are done, of which it hears at once */
	struct verdict note; /* of a session that goes on; written before .notes, read before it is false */
	/* of the thread that executes */
	uint64_t begun, reported; /* done, when the event loop last heard of it */
	bool running;             /* request begun - 1 */
	uint64_t since;           /* us, of that */
	uint64_t noted;           /* .begun, when the last note was written */
	uint64_t looped;          /* iterations of requests that are over */
	struct loops own;
	_Atomic(struct loops *) loops; /* of the first connection; NULL: its program has no loop without a
					  bound */
	uint64_t rests_to;             /* us */
	uint64_t active, awake; /* us, when there was something to do; and for how long it is polled then */
	bool slept;             /* since then */
	bool is_short;          /* a request was; with a verdict, for when it is done */
	uint64_t short_one;
	bool faulted; /* request begun - 1: with a verdict, for when those before it are done */
	bool cut_off;
	bool looking; /* ahead: what is read then belongs to no request that has begun */
	bool blind;   /* that was cut off, and it does not look any more */
	int error;    /* of sends */
	/* of a turn */
	uint64_t now, wqes; /* us; work requests that are left */
};

/* Slots are a power of two, as RECVs are (rnic/plain.h); a division for each use takes longer than the rest
 */
static inline uint32_t cpu_slot(const struct session *s, uint64_t n)
{
	return (uint32_t)n & (s->queues.layout.slots - 1);
}

/* Its memory has the RECVs, and then the replies */
static inline uint64_t cpu_request_at(const struct session *s, uint64_t n)
{
	return (uint64_t)cpu_slot(s, n) * s->cpu->layout.recv_bytes;
}

static inline uint64_t cpu_reply_at(const struct session *s, uint64_t n)
{
	const struct layouts_cpu *l = &s->cpu->layout;

	return (uint64_t)s->queues.layout.slots * l->recv_bytes + n % l->replies * l->reply_bytes;
}

static inline struct cpu_request *cpu_request(const struct session *s, uint64_t n)
{
	return &s->cpu->requests[cpu_slot(s, n)];
}

/* ---- turns ---- */

enum session_cpu_turn {
	SESSION_CPU_BUSY,    /* there was something to do, and may be more */
	SESSION_CPU_IDLE,    /* there was nothing to do, and soon may be */
	SESSION_CPU_RESTING, /* a loop has reached its rate: session_cpu_resting() */
	SESSION_CPU_ASLEEP,  /* an event comes when there is something to do */
	SESSION_CPU_BROKEN,  /* with a verdict; no turn more */
};

/** Takes completions, some hundred at most: counts requests that have come and those that are done. 0: there
 * are no more for now; 1: there may be; -1: a verdict. After the last turn it is the event loop that calls.
 */
int session_cpu_take(struct session *s);
/** Takes completions, and executes what there is, up to the limit of a turn. */
enum session_cpu_turn session_cpu_turn(struct session *s, uint64_t now_us);
/** Microseconds until a session that rests goes on; 0: now. */
uint64_t session_cpu_resting(const struct session *s, uint64_t now_us);
/** True once after each turn that the event loop has to look at: there is a verdict or a note, or RECVs are
 * to be posted, or the session falls asleep and what is done has not been counted. */
bool session_cpu_changed(struct session *s);

#endif
