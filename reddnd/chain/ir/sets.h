/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sets.h - the rings of a session: one for queue 0 of its image, and one for each code queue, or two if the
 * image has two *sets* of code queues. Of two sets one has the code of even instances, the other that of odd
 * ones, so that the code of two requests is at work at the same time (docs/design/recycling.md). All the
 * rest, replies, RECVs, scratch memory, is as with one set: instance seq is in slot seq % slots, its lap is
 * seq / slots. A ring of a set has slots / 2 instances in each lap.
 *
 * Rings are numbered: that of queue 0, those of the first set, those of the second. What a session has by
 * ring (chain_env.queue[], its queue pairs and CQs) is in that order. With one set it is that of the queues.
 *
 * Thread rules: any.
 */
#ifndef CHAIN_IR_SETS_H
#define CHAIN_IR_SETS_H

#include "reddnd/chain/ir/image.h"

static inline unsigned chain_rings(const struct chain_image *img)
{
	return 1 + img->sets * (img->nqueues - 1);
}

/** The ring that has queue @q of instance @seq. */
static inline unsigned chain_ring_of(const struct chain_image *img, unsigned q, uint64_t seq)
{
	return q == 0 ? 0 : q + ((unsigned)seq & (img->sets - 1)) * (img->nqueues - 1);
}

/** The set that ring @ring is of; 0 for that of queue 0. */
static inline unsigned chain_set_of(const struct chain_image *img, unsigned ring)
{
	return ring < img->nqueues ? 0 : (ring - 1) / (img->nqueues - 1);
}

/** The queue that ring @ring is of. */
static inline unsigned chain_queue_of(const struct chain_image *img, unsigned ring)
{
	return ring - chain_set_of(img, ring) * (img->nqueues - 1);
}

/** From one instance to the next one in the same ring of queue @q. */
static inline unsigned chain_stride(const struct chain_image *img, unsigned q)
{
	return q == 0 ? 1 : img->sets;
}

/** @n by chain_stride(), which is 1 or 2. */
static inline uint64_t chain_by_stride(const struct chain_image *img, unsigned q, uint64_t n)
{
	return n >> (chain_stride(img, q) - 1);
}

/** Instances in each ring of queue @q, of @slots in all. */
static inline unsigned chain_ring_slots(const struct chain_image *img, unsigned q, unsigned slots)
{
	return (unsigned)chain_by_stride(img, q, slots);
}

/** How many of the first @n instances are in ring @ring. */
static inline uint64_t chain_instances_in(const struct chain_image *img, unsigned ring, uint64_t n)
{
	return ring == 0 ? n : (n + img->sets - 1 - chain_set_of(img, ring)) / img->sets;
}

/** WQEBB of ring @ring at which its pad begins. */
static inline uint32_t chain_pad_at(const struct chain_image *img, unsigned ring, unsigned slots)
{
	const unsigned q = chain_queue_of(img, ring);

	return img->queue[q].wqebbs * chain_ring_slots(img, q, slots);
}

#endif
