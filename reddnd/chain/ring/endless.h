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
 * a dormant SEND_EN of another queue. The WAIT is for a CQE of env->call.gate_cqn; in the very first
 * iteration it is awake, and waits for the first CQE of all. Later iterations begin at once, unless the one
 * before has woken it and the SEND_EN, which then starts queue env->call.exit_qpn. The loop patches their
 * indices into them, since the number of calls is unknown when the ring is made. Everything that the loop did
 * has landed when it is left.
 *
 * With env->call.credit_cqn each half of a lap waits for a CQE of that CQ, the first half for the first one.
 * So who causes these CQEs decides how fast the loop runs, and it comes to rest when nobody does.
 *
 * Refuses what cannot be resolved, and a description in which nothing waits for a READ or an atomic of the
 * iteration before the next one is enabled: there the ring refreshes itself.
 */
#ifndef CHAIN_RING_ENDLESS_H
#define CHAIN_RING_ENDLESS_H

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/lap.h"

struct chain_loop_info {
	unsigned queue;          /* of the loop */
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

/**
 * Lays out @d in the ring env->queue[q] of its queue q, with lanes at env->lanes, words at env->scratch, and
 * the bindings of regions. With env->queue[q].ring == NULL nothing is written: sizes only (ring_wqebbs is
 * looked at). Only the code queue of @env is used. @info all zero, or what it was for the same loop and ring,
 * which saves a search. 0, CHAIN_REFUSED with the reason in @err, -E2BIG: not two iterations fit; -ENOMEM.
 */
int chain_loop(const struct chain_desc *d, const struct chain_env *env, struct chain_loop_info *info,
	struct chain_error *err);

/**
 * Sizes the ring for a loop that a chain calls: the shortest one in which the READs that refresh it serve
 * many iterations, of at most @max_wqebbs. 0 and its WQEBBs in @ring, the rest in @info; otherwise as
 * chain_loop().
 */
int chain_loop_size(const struct chain_desc *d, uint32_t max_wqebbs, uint32_t *ring,
	struct chain_loop_info *info, struct chain_error *err);

/**
 * Lays it out in a ring of @ring WQEBBs that is never run, to do all proofs of chain_loop(). The
 * bytes of the ring are in *bytes, to be freed with free(): queue pair 1 and CQ 2, called by CQ 4 and queue
 * pair 3, credits of CQ 5; key 1 is that of the ring, 2 of its lanes, 3 of its scratch, 4 of the first
 * region.
 */
int chain_loop_image(const struct chain_desc *d, uint32_t ring, struct chain_loop_info *info, uint8_t **bytes,
	struct chain_error *err);

/** Finds such a ring of any size, and proves it as chain_loop_image() does. */
int chain_loop_prove(
	const struct chain_desc *d, uint32_t *ring, struct chain_loop_info *info, struct chain_error *err);

#endif
