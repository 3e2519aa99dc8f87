/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue-layout.h - where a session's queues lie in its block of the arena. Pure.
 *
 *   doorbell records | CQEs: RECV CQ, code CQs | work queues: reply QP (RQ, SQ), code QPs | scratch
 *                                                ^ from here on the chain has a memory key
 *
 * A recycled chain (chain/recycle.h) has a CQ of its own for replies, and a recycler: CQ and QP; its lanes
 * follow the scratch. A loop without a bound (chain/ring/endless.h) has a CQ and a QP; its lanes, its
 * scratch, and what it shares with the chain come last.
 */
#ifndef GENERATION_QUEUE_LAYOUT_H
#define GENERATION_QUEUE_LAYOUT_H

#include "reddnd/chain/ring/recycle.h"
#include "reddnd/generation/loop-size.h"

struct queue_layout_qp { /* a CQ and the work queues of a QP */
	uint64_t cqes_off, cq_db_off;
	unsigned cq_log_size;
	uint64_t wq_off, qp_db_off;
	uint64_t ring_off; /* of the SQ */
	uint32_t ring_wqebbs;
};

struct queue_layout_loop {
	struct queue_layout_qp queue;
	uint64_t lanes_off, scratch_off, shared_off;
};

struct queue_layout {
	unsigned slots;     /* instances: a power of two */
	uint32_t rq_stride; /* bytes */
	/* by queue of the chain; the CQ of queue 0 is the one of its RECVs */
	struct queue_layout_qp queue[CHAIN_MAX_QUEUES];
	bool recycled;
	struct queue_layout_qp recycler,
		replies; /* of replies: only the CQ, for twice as many as there are slots */
	struct chain_recycle recycling;
	uint64_t scratch_off, lanes_off;
	struct queue_layout_loop loop;
	uint64_t code_off, code_size, size; /* bytes; the offset page aligned */
};

/** Instances for @depth outstanding requests: enough to re-arm half while the other half is used. */
unsigned queue_layout_slots(unsigned depth);

/** @loop: NULL if there is none. 0, or -E2BIG when a ring would take more than @max_wqebbs; -ENOMEM. */
int queue_layout_make(const struct chain_image *img, const struct loop_size *loop, bool recycled,
	unsigned slots, uint32_t max_wqebbs, struct queue_layout *l);

#endif
