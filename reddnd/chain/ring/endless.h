/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endless.h - an endless loop: a description of one iteration, turned into a ring that the NIC runs round and
 * round for ever, without a CPU (lap.h).
 *
 * All steps are in one code queue, in the order of the text. A patch of a step that comes later is for this
 * iteration, one of a step that came before (or of the patching step itself) for the next; in the same way a
 * SEND_EN enables through the next WQE of that step. The loop ends when no SEND_EN enables the next
 * iteration: make one dormant, or patch its opcode.
 *
 * Another chain may call it. Then its first step is a dormant WAIT for nothing (until NULL), and its last one
 * a dormant SEND_EN of another queue. The WAIT is for a CQE of the queue that calls (CHAIN_LOOP_CALLER); in
 * the very first iteration it is awake, and waits for the first CQE of all. Later iterations begin at once,
 * unless the one before has woken it and the SEND_EN, which then starts the queue that calls. The loop
 * patches their indices into them, since the number of calls is unknown when the ring is made. Everything
 * that the loop did has landed when it is left.
 *
 * Each half of a lap waits for a CQE of another CQ (RING_CREDITS), the first half for the first one. So
 * who causes these CQEs decides how fast the loop runs, and it comes to rest when nobody does.
 *
 * Refuses what cannot be resolved, and a description in which nothing waits for a READ or an atomic of the
 * iteration before the next one is enabled: there the ring refreshes itself.
 */
#ifndef CHAIN_RING_ENDLESS_H
#define CHAIN_RING_ENDLESS_H

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ring/lap.h"

struct chain_loop_info {
	unsigned iterations;     /* per lap of the ring */
	uint16_t start;          /* producer index that starts it */
	struct lap_size lap;     /* per lap */
	uint32_t scratch;        /* bytes */
	uint32_t progress;       /* offset in the lanes of a 64-bit word: iterations, half a lap at a time */
	uint32_t lanes;          /* bytes of them, progress included */
	uint32_t wqebbs, second; /* of one iteration; where the second half of the lap begins */
	unsigned renew;          /* the step before which the last iteration of each half renews the ring, */
	uint32_t renewal[2];     /* and WQEBBs of that */
};

/**
 * The step of @d that the WQEBB with that index belongs to, in the ring that @info was found for; d->nsteps:
 * the WQEBB renews the ring, or pads it.
 */
unsigned chain_loop_step(
	const struct chain_desc *d, const struct chain_loop_info *info, uint32_t ring_wqebbs, uint16_t index);

/** Symbols (ring.h) of the image of a loop, beside RING_SELF, RING_SCRATCH, RING_LANES and regions. */
enum { CHAIN_LOOP_CALLER = RING_QUEUE };

/**
 * Finds the ring for @d: the shortest one, of at most @max_wqebbs, in which the READs that refresh it serve
 * many iterations. 0 and its WQEBBs in @ring, the rest in @info; CHAIN_REFUSED with the reason in @err;
 * -E2BIG: not two iterations fit; -ENOMEM.
 */
int chain_loop_size(const struct chain_desc *d, uint32_t max_wqebbs, uint32_t *ring,
	struct chain_loop_info *info, struct chain_error *err);

/**
 * Lays @d out in a ring of that size and proves it. @info: of chain_loop_size(). @shared: the region that is
 * in the block of the session; d->nregions: none. Otherwise as chain_loop_size().
 */
int chain_loop_new(struct ring_image **image, const struct chain_desc *d, uint32_t ring, unsigned shared,
	const struct chain_loop_info *info, struct chain_error *err);

/** Writes it, its lanes and its scratch memory. */
void chain_loop_write(const struct ring_image *image, const struct chain_desc *d,
	const struct chain_loop_info *info, const struct ring_values *v);

#endif
