/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * instance.h - where an instance of a chain lies, and what its relocations are made from: worked out once for
 * all of them. For arm.h.
 *
 * Thread rules: any.
 */
#ifndef CHAIN_RING_INSTANCE_H
#define CHAIN_RING_INSTANCE_H

#include "reddnd/chain/ring/arm.h"

#include <stdbool.h>

struct chain_instance {
	const struct chain_image *img;
	const struct chain_env *env;
	unsigned slot;
	uint64_t lap;
	uint64_t seq, slot_addr;
	struct {
		uint64_t addr; /* IOVA of its first WQEBB */
		uint64_t at,
			next; /* ring index of that, and of the one of the next instance there, not reduced */
		uint8_t *wqes;
	} queue[CHAIN_MAX_QUEUES];
	uint64_t scratch;
	uint8_t *scratch_mem;
};

void chain_locate(
	struct chain_instance *in, const struct chain_image *img, const struct chain_env *env, uint64_t seq);

/** What a symbol has: 0 for a key that it is not used by. */
struct chain_symbol {
	uint64_t iova;
	uint32_t lkey, rkey;
};

/** @sym: enum chain_sym_kind. */
struct chain_symbol chain_symbol(const struct chain_instance *in, unsigned sym, unsigned index);

/** The CQE number, not reduced, that a WAIT of instance in->seq waits for with addend 0. @index: as of CQN32.
 */
uint64_t chain_cqe_number(const struct chain_instance *in, unsigned index);

/** Whether @wqebbs WQEBBs of an instance in queue @q reach through the pad: CHAIN_REL_ENABLE then counts from
 * the end of the instance on, at the next one. */
static inline bool chain_through_pad(const struct chain_queue *q, uint32_t wqebbs)
{
	return wqebbs > q->wqebbs || (wqebbs == q->wqebbs && !q->head_wqebbs);
}

#endif
