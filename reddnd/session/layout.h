/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - where a session's queues lie in its block of the arena. Pure.
 *
 *   doorbell records | CQEs: RECV CQ, code CQs | work queues: reply QP (RQ, SQ), code QPs | scratch
 *                                                ^ from here on the chain has a memory key
 */
#ifndef SESSION_LAYOUT_H
#define SESSION_LAYOUT_H

#include "reddnd/chain/image.h"

struct session_layout {
	unsigned slots;     /* instances: a power of two */
	uint32_t rq_stride; /* bytes */
	struct {            /* by queue of the chain; the CQ of queue 0 is the one of its RECVs */
		uint64_t cqes_off, cq_db_off;
		unsigned cq_log_size;
		uint64_t wq_off, qp_db_off;
		uint64_t ring_off; /* of the SQ */
		uint32_t ring_wqebbs;
	} queue[CHAIN_MAX_QUEUES];
	uint64_t scratch_off;
	uint64_t code_off, code_size, size; /* bytes; the offset page aligned */
};

/** Instances for @depth outstanding requests: enough to re-arm half while the other half is used. */
unsigned session_slots(unsigned depth);

/** 0, or -E2BIG when a ring would take more than @max_wqebbs. */
int session_layout(
	const struct chain_image *img, unsigned slots, uint32_t max_wqebbs, struct session_layout *l);

#endif
