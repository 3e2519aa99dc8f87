/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue-layout.h - offsets and sizes of a session's queues in its block of the arena. Pure.
 *
 *   CQEs: code CQs, RECV CQ | doorbell records | scratch | work queues: reply QP (RQ, SQ), code QPs
 *                                               ^ from here on the chain has a memory key
 *
 * The CQEs of the RECVs of a chain with a payload, of which it reads the lengths, are behind the scratch.
 *
 * A recycled chain (chain/ring/recycle.h) also has a CQ for replies, and the CQ and QP of the recycler; its
 * lanes come last. A loop without a bound (chain/ring/endless.h) also has two CQs and QPs, one of them for
 * its credits; its lanes, its scratch, and the memory that it shares with the chain come last.
 */
#ifndef GENERATION_QUEUE_LAYOUT_H
#define GENERATION_QUEUE_LAYOUT_H

#include "reddnd/chain/ring/recycle.h"

#include <stdbool.h>
#include <stdint.h>

/* Sizes for the loop without a bound of a program (chain/ring/endless.h), beside its chain. */

struct program;

struct loop_size {
	uint32_t ring_wqebbs;
	uint32_t cqes;                   /* at most, after an error */
	uint32_t lanes, scratch, shared; /* bytes */
	uint32_t credits;                /* WQEBBs of the queue that gives the credits: a power of two */
};

/** How a loop is held at a rate: a credit lets it run half a lap of its ring. */
struct loop_pace {
	uint64_t per_second; /* credits */
	uint32_t ahead;      /* credits that it may have, for the time in which nobody gives more */
};

/** False if @p has no loop without a bound. It runs at most @rate WQEs per second. */
bool loop_size_of(const struct program *p, uint64_t rate, struct loop_size *size);

/** At least one credit per second, and two ahead. */
struct loop_pace loop_pace_of(const struct program *p, uint64_t rate);

/** Credits for a loop that has @ahead unused ones, one of those of @connections that share the rate, when
 * there are @tokens for it: it may have its part of pace->ahead. */
uint64_t loop_pace_credits(
	const struct loop_pace *pace, uint64_t ahead, unsigned connections, uint64_t tokens);

struct queue_layout_qp { /* a CQ and the work queues of a QP */
	uint64_t cqes_off, cq_db_off;
	unsigned cq_log_size;
	uint64_t wq_off, qp_db_off;
	uint64_t ring_off; /* of the SQ */
	uint32_t ring_wqebbs;
};

struct queue_layout_loop {
	struct queue_layout_qp queue, credits;
	uint64_t lanes_off, scratch_off, shared_off;
};

struct queue_layout {
	unsigned slots;     /* instances: a power of two */
	uint32_t rq_stride; /* bytes */
	/* by queue of the chain; the CQ of queue 0 is the CQ of its RECVs */
	struct queue_layout_qp queue[CHAIN_MAX_QUEUES];
	bool recycled;
	struct queue_layout_qp recycler, replies; /* replies: only the CQ, with two entries per slot */
	struct chain_recycle recycling;
	uint64_t scratch_off, lanes_off;
	struct queue_layout_loop loop;
	uint64_t code_off, code_size, size; /* bytes; the offset line aligned */
	uint64_t sends_size; /* .size of a session of the CPU whose replies end with SENDs (layouts.h) */
};

/** Number of instances for @depth outstanding requests: one half is armed again while the other half is used.
 * With fewer, a recycler has more to do for each. */
unsigned queue_layout_slots(unsigned depth, bool recycled);

/** Fills in @l. @loop: NULL if the program has none. 0; -E2BIG when a ring would take more than @max_wqebbs;
 * -ENOMEM. */
int queue_layout_make(const struct chain_image *img, const struct loop_size *loop, bool recycled,
	unsigned slots, uint32_t max_wqebbs, struct queue_layout *l);

#endif
