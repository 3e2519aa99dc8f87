/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-check.h - proves of a ring that renews itself, from its bytes alone, that the order in it is enough.
 * order.h is the same for the instances of a chain; what is assumed of the NIC is said there, and nothing
 * more is assumed here.
 *
 * One queue starts its WQEs in order, so time is a line: lap after lap, WQE after WQE. Of each WQE follows
 * from the ring when at the earliest it is fetched (the SEND_EN of this ring that first covers it) and when
 * at the latest it has landed (a fence, if it is a READ or an atomic; a WAIT for its own CQE or a later one).
 * What is proven:
 *
 *   - whatever is written into a WQE has landed before that WQE, the next time it runs, may be fetched;
 *   - accesses to the same bytes of lanes, scratch or regions, one of them writing, are ordered. An address
 * that is itself written into is taken for all of its memory key. Two atomics may race, and a WRITE is
 * executed before what follows it;
 *   - no SEND_EN goes back, or covers more than one lap from where it is: a WQE is not fetched before it has
 * run;
 *   - a WAIT for an own CQE is for one that is earlier in the lap.
 */
#ifndef CHAIN_RING_LAP_CHECK_H
#define CHAIN_RING_LAP_CHECK_H

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ring/lap.h"

/** @start: producer index that starts the ring. 0; CHAIN_REFUSED with the reason in @err; -ENOMEM. */
int lap_check(const struct lap_env *env, uint16_t start, struct chain_error *err);

#endif
