/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-layout.h - private to lap*.c: the place of each WQE in the ring, and the numbers that follow from it.
 *
 * After a call the caller looks at l->nomem.
 */
#ifndef CHAIN_RING_LAP_LAYOUT_H
#define CHAIN_RING_LAP_LAYOUT_H

#include "reddnd/chain/ring/lap-parts.h"

/* In the order of use */

/** Puts everything in its place, given how many READs, FETCH_ADDs and WRITEs there are. */
void lap_place(struct lap *l);
/** Appends NOPs up to WQEBB @end. */
void lap_pad(struct lap *l, uint32_t end, unsigned section);
/** Numbers the CQEs of a lap. With a WAIT for an own CQE they are made up to a multiple of 256, or of the
 * largest power of two for which the lap has so many WQEs. */
void lap_number_cqes(struct lap *l);
/** Lists what is refreshed: numbers of the ring's WQEs, and what the caller named. */
void lap_collect(struct lap *l);

/** In lap 0: the CQE that the WAIT @it is for, and the index of the SEND_EN @it. */
uint64_t lap_wait_value(const struct lap *l, const struct lap_item *it, unsigned for_id);
uint32_t lap_enable_value(const struct lap *l, const struct lap_item *it, unsigned through);

#endif
