/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-check.h - proves, from the bytes of a ring that renews itself, that its order is enough. order.h does
 * this for the instances of a chain. It lists what is assumed of the NIC; nothing more is assumed here.
 *
 * One queue starts its WQEs in order, so time is a line: lap after lap, WQE after WQE. The ring determines
 * for each WQE the earliest fetch (by the SEND_EN of this ring that first covers it) and the latest landing
 * (by a fence, if it is a READ or an atomic; by a WAIT for its own CQE or a later one). What is proven:
 *
 *   - every patch of a WQE has landed before the next fetch of that WQE;
 *   - accesses to the same bytes of lanes, scratch or regions, one of them writing, are ordered. An address
 * that is patched counts as all of its memory key, a length that is patched as all that follows under the
 * key. Two atomics may race, and a WRITE has gathered and
 * been executed before what follows it in the queue is;
 *   - no SEND_EN goes back, or covers more than one lap from where it is: a WQE is not fetched before it has
 * run;
 *   - a WAIT for an own CQE is for one that is earlier in the lap.
 *
 * Of a ring that software enables by doorbells (lap.h) this is assumed of software: it rings for section s
 * not before it has seen s - n / 2 + 1 sections in the word that counts them. So a FETCH_ADD of that word
 * takes the place of a SEND_EN, the earliest fetch of what it allows is when it starts, and all of the above
 * is proven in the same way. Besides: each section of a lap adds to the word once, all the same, nothing else
 * writes to it, and no SEND_EN is for this ring.
 */
#ifndef CHAIN_RING_LAP_CHECK_H
#define CHAIN_RING_LAP_CHECK_H

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ring/lap.h"

/** The ring and its lanes. */
struct lap_made {
	const uint8_t *ring;
	uint32_t wqebbs, qpn, cqn, lkey, lanes_key;
	uint64_t iova, lanes_iova;
	uint32_t lanes_size;
	uint32_t first_cqe; /* as of struct lap_env */
	unsigned group;
	uint64_t discard;     /* 8 bytes for unused old values, written in any order; 0: none */
	const uint8_t *verbs; /* by WQEBB, 1 + what the WQE that begins there may become; 0: what it is. Or
				 NULL */
	const struct lap_doorbell *doorbell; /* or NULL */
	uint64_t count_iova;                 /* with it: of the word that counts, under .lanes_key */
};

/** @start: producer index that starts the ring, unless it has a .doorbell. 0; CHAIN_REFUSED with the reason
 * in @err; -ENOMEM. */
int lap_check(const struct lap_made *made, uint16_t start, struct chain_error *err);

#endif
