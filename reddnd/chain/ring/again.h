/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * again.h - arms slots again: writes only what the instance before has changed, and the numbers that go on.
 * What that is follows from the image. It is prepared once, as tables that a tight loop goes through: words
 * of eight bytes of which some are restored, and fields that are a base plus a constant. The bases (index of
 * an instance in each ring, CQE numbers, its reply slot) are few, and most go on by a constant from one
 * instance to the next.
 *
 * Thread rules: what is prepared is read only: any. Arming as of arm.h.
 */
#ifndef CHAIN_RING_AGAIN_H
#define CHAIN_RING_AGAIN_H

#include "reddnd/chain/ring/arm.h"

struct chain_again;

/** @img must outlive it. -ENOMEM. */
int chain_again_new(struct chain_again **again, const struct chain_image *img);
void chain_again_free(struct chain_again *again); /* NULL is fine */

/** Does what chain_arm() does for the instances from @from up to @to, exclusive, where this memory has
 * instance seq - slots of the same image and environment in the slot of each. Not for the first lap. */
void chain_arm_again(
	const struct chain_again *again, const struct chain_env *env, uint64_t from, uint64_t to);

#endif
