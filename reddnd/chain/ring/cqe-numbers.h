/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cqe-numbers.h - private to recycle-template.c: the numbers of a recycler that count CQEs, for CQs that have
 * had some before its first instance.
 *
 * They are the indices of the WAITs in the recycler's ring, and the lanes from which it renews those of all
 * rings. A CQ that had b CQEs adds b to each of its numbers. Only the upper bytes of a number may be in a
 * lane, and several numbers may share one (lanes.h): where b carries into the upper bytes of some of them
 * alone, the lane would have to be two.
 *
 * Thread rules: what was found is only read by the other functions, on any thread.
 */
#ifndef CHAIN_RING_CQE_NUMBERS_H
#define CHAIN_RING_CQE_NUMBERS_H

#include "reddnd/chain/ring/recycle.h"

struct cqe_numbers;

/** Finds those of a recycler that chain_recycle() has written for @env, which has no CQEs before. -ENOMEM. */
int cqe_numbers_find(struct cqe_numbers **found, const struct chain_image *img, const struct chain_env *env);
void cqe_numbers_free(struct cqe_numbers *n); /* NULL is fine */

/** True if the numbers can begin behind what the CQs of @env have had. Nothing else of it is looked at. */
bool cqe_numbers_fit(const struct cqe_numbers *n, const struct chain_env *env);
/** Lets them begin there, in env->recycler.ring and env->lanes.mem, which have the bytes that they were found
 * in. */
void cqe_numbers_write(const struct cqe_numbers *n, const struct chain_env *env);

#endif
