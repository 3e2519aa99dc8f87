/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recycle.h - answers requests without a CPU: a queue of the NIC arms each instance that has completed, as
 * the daemon does with arm.h.
 *
 * The *recycler* is one more loopback QP, managed but for what follows on payloads. Its ring is an endless
 * lap (lap.h) of sections, each for an equal part of the slots. Section g
 *
 *   - waits for the last CQE of the reply queue that instances of part g of the slots cause. By then all
 * of these instances are over, because chain_check_order() proves that the last CQE of a reply comes last,
 * and CQEs of a queue are in order. For the last CQEs of the code queues too: flushed replies have CQEs;
 *   - copies what they left in the reply queue to the *log*, where the daemon can read how they ended after
 * they are armed again;
 *   - restores everything in them that the chain changed, and sets every number in them to its value for the
 * next lap of the slots: WQE indices, enables, CQE numbers, request numbers;
 *   - waits until that has landed, and then enables the RECVs of as many more requests (RECV_EN). So a client
 * that exceeds its credits gets RNR, and never reaches a slot that is not armed.
 *
 * So the rule of arming holds: the RECV of instance n is enabled when n and n + 1 are armed, and n is
 * armed again when n - slots is over. The chain's own WQEs are the same as when the daemon arms it, and the
 * path of a request gets no longer.
 *
 * Of a chain with a payload the daemon decides when a section begins, because nothing in these instances may
 * change before it has looked what became of their extents (publish.h), and has given their slots the next
 * ones (chain_arm_extent()). When it has done so it gives the recycler one more section of the ring, by the
 * doorbell: the SQ is not managed. The section needs no WAIT for the instances, because the daemon has seen
 * that they are over, and enables no other. The doorbell record has how many were given. The NIC may fetch
 * WQEs as soon as the doorbell covers them, so that is chain_recycle_may_give() at most.
 *
 * Where instances overlap, laps have an end (below), so that RECVs which are flushed do not keep the
 * chain going.
 *
 * A request that comes while a section runs shares the NIC with it. So sections are short where there are
 * many slots, and each costs some work requests, so they are not shorter than that.
 *
 * With S slots in N sections a client may have S - S / N - 1 requests outstanding. 256 slots cost the
 * recycler least: request numbers then change only in their upper bytes, which are the same in all slots.
 */
#ifndef CHAIN_RING_RECYCLE_H
#define CHAIN_RING_RECYCLE_H

#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/lap.h"

#include <stdbool.h>

enum {
	CHAIN_RECYCLE_MAX_SECTIONS = LAP_MAX_SECTIONS,
	CHAIN_RECYCLE_MIN_SLOTS = 4,
	CHAIN_RECYCLE_MIN_RING = 256 /* WQEBBs, of every queue */
};

struct chain_recycle {
	uint16_t end[CHAIN_RECYCLE_MAX_SECTIONS]; /* by section: producer index that enables the recycler
				through it, in lap 0. That of the first one starts a managed one */
	uint16_t recvs;                           /* producer index of RECVs to begin with, for one RECV_EN */
	uint32_t ring_wqebbs;                     /* of the recycler */
	uint32_t lanes;                           /* bytes, progress and log included */
	uint32_t progress; /* offset in the lanes of a 64-bit word, little-endian: requests that are over, a
			      section's slots at a time; their slots are ready again for others */
	uint32_t log;      /* offset in the lanes: the reply queue of all slots (without its pad) as it was
			      when the instance in each slot was last over. What is of section g changes only
			      after all instances of its slots are over */
	uint16_t recv_en[CHAIN_RECYCLE_MAX_SECTIONS]; /* by section: WQEBBs of the recycler's ring in which
				its RECV_EN are */
	struct lap_size lap;                          /* WQEs for env->slots requests */
};

/** Sections of the recycler of a chain with @slots slots, which is a power of two: a power of two, too. */
unsigned chain_recycle_sections(unsigned slots);
/** Slots of a section: they are armed again together. */
unsigned chain_recycle_together(unsigned slots);

/* Of a chain with a payload: */

/** Sections that may have been given in all when instances up to @recycled are armed again, as the recycler
 * has counted them. */
uint64_t chain_recycle_may_give(unsigned slots, uint64_t recycled);
/** The producer index that gives @given sections in all. */
uint16_t chain_recycle_index(const struct chain_recycle *k, unsigned slots, uint64_t given);
/** How many have been @given if that index is @index. -EBADMSG: nobody may have given so many. */
int chain_recycle_given(
	const struct chain_recycle *k, unsigned slots, uint64_t recycled, uint16_t index, uint64_t *given);

/**
 * What the recycler of @img needs with env->slots (a power of two), env->first and env->queue[].ring_wqebbs
 * (chain_recycle_ring()); nothing else of @env is looked at. -E2BIG: more than a ring can hold. -EOPNOTSUPP:
 * the chain changes control segments, as the direct form of conditions does, or its instances overlap and a
 * code queue has no CQE, by which the recycler sees that it is through with one; or it publishes without a
 * payload, and nobody looks what became of that. -ENOMEM.
 */
int chain_recycle_size(
	const struct chain_image *img, const struct chain_env *env, struct chain_recycle *size);

/** WQEBBs of the ring of queue @q of a recycled chain; 0 if no ring can be that large. */
uint32_t chain_recycle_ring(const struct chain_image *img, unsigned q, unsigned slots);

/** Lays the recycler out for the same @env, and proves it. @size as chain_recycle_size() gave it. -ENOMEM. */
int chain_recycle_new(struct ring_image **recycler, const struct chain_image *img,
	const struct chain_env *env, const struct chain_recycle *size);

/**
 * Arms every slot and writes RQ, pads, the recycler's ring (env->recycler) and its lanes (env->lanes): once,
 * before anything is started. The CQ of queue 0 must be the session's own and ignore overrun, its RQ be
 * managed, and env->slots a multiple of env->slot_count, so that a slot always answers to the same place.
 * @recycler: of @img and the sizes in @env. @writer: of @img.
 */
void chain_recycle_write(const struct ring_image *recycler, const struct chain_image *img,
	const struct chain_writer *writer, const struct chain_env *env);

/*
 * Where the laps of a recycled chain end whose instances overlap (image.h): nothing of a lap begins before
 * queue 0, the queue of the client, has come to the last reply of the lap before.
 *
 * The head of such a chain is in a code queue, and a RECV that is flushed ends its WAIT, too. When the
 * client's queue pair has failed, instances go on with RECVs that are flushed, and the recycler would arm
 * them and enable RECVs for ever. So the last instance of a lap enables the queue with the heads to the end
 * of its ring, and not through the head of the first slot. A SEND_EN does that, with which the pad of queue 0
 * begins, and a queue that has failed executes nothing. So the chain comes to rest with the lap that it is in
 * when queue 0 fails.
 *
 * When the SEND_EN starts, the first slot is armed: the RECV of the last instance of a lap is enabled when
 * the instance after it is. And no other SEND_EN for that queue comes later: chain_check_order() proves that
 * all steps of code queues are over when the last step of the reply starts (ordering-proof.md).
 */

/** Whether a recycled @img has such an end. */
bool chain_has_lap_end(const struct chain_image *img);

/** WQEBB of the ring of queue 0 where the SEND_EN is; the pad has that one at least. */
uint32_t chain_lap_end_at(const struct chain_image *img, const struct chain_env *env);

/** The producer index of the SEND_EN at the end of lap @lap. */
uint16_t chain_lap_end_index(const struct chain_image *img, const struct chain_env *env, uint64_t lap);

/** The producer index that @r, of kind ENABLE, has in instance @seq of a recycled chain. */
uint16_t chain_recycled_index(const struct chain_image *img, const struct chain_env *env,
	const struct chain_reloc *r, uint64_t seq);

/** Writes the end of lap @lap over what arm.h has written: the pad of queue 0, and the last instance. */
void chain_write_lap_end(const struct chain_image *img, const struct chain_env *env, uint64_t lap);

#endif
