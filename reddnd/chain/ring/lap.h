/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap.h - a ring that renews itself: one managed SQ whose WQEs run lap after lap for ever, with the NIC's
 * index check on and no CPU.
 *
 * Numbers go stale when a ring starts its next lap: the index in every control segment (16 bit, counts
 * WQEBBs since RESET), the producer indices of SEND_EN (16 bit), the CQE numbers of WAIT (24 bit). Each grows
 * by a constant per lap. They are refreshed by READs that scatter copies of *lanes* into them, a section of
 * the lap at a time, while another section runs:
 *
 *   - lanes are little-endian numbers in memory, packed into 64-bit words; one masked FETCH_ADD per word and
 * lap, with a field boundary above each lane, moves them on. Then WRITEs gather from them the copies for the
 * READs of all sections. A data segment per byte turns the byte order around;
 *   - bytes that do not change are left out: a ring of 256 * n WQEBBs changes only the upper byte of an
 * index, a CQ that gets 256 * n CQEs per lap only the two upper bytes of a CQE number. WQEs that need no
 * signal are signalled to reach such a number of CQEs;
 *   - equal numbers share a lane, and so do those that are equal but for bits which never change (lanes.h).
 *
 * A section can refresh more than the ring's own WQEs: anything that advances by a constant per lap, and
 * bytes that must be restored. recycle.h renews whole chains in this way.
 *
 * Use: lap_new(); WQEs in order, with lap_renew() where the READs of a section go and lap_advance() where
 * FETCH_ADDs and WRITEs go; lap_finish() lays it out. Sections: WQEs of section s are refreshed in section s
 * + n / 2 (mod n). The caller's part, proven by lap-check.h from the ring itself: a section is enabled, WQE
 * by WQE or whole, only after a WAIT for a CQE later than the READs that refreshed it, and lap_advance()
 * comes in the last section, after its lap_renew().
 *
 * Needs masked FETCH_ADD of 8 bytes. Writes memory only; the object owns all of its allocations.
 */
#ifndef CHAIN_RING_LAP_H
#define CHAIN_RING_LAP_H

#include "reddnd/chain/ir/verbs.h"

#include <stddef.h>

enum {
	LAP_MAX_SECTIONS = 8,
	LAP_MAX_SGE = 30, /* of a READ or WRITE of its own: 512 bytes, what every ConnectX takes */
	LAP_WQE_BYTES = 512,
	LAP_MIN_RING = 256,
	LAP_NOWHERE = 64, /* bytes at the end of the lanes that take unused data */
};

/** Where the ring and its lanes are. Addresses named iova are the NIC's. */
struct lap_env {
	uint32_t qpn, cqn;
	uint32_t wqebbs; /* of the ring: a power of two, LAP_MIN_RING to 32768 */
	uint32_t lkey;   /* of the ring */
	uint32_t lanes_lkey, lanes_rkey;
	uint8_t *ring, *lanes;
	uint64_t iova, lanes_iova; /* multiples of 64 */
	uint32_t lanes_size;
	uint32_t first_cqe;   /* number of the first CQE this queue will cause */
	bool ignores_index;   /* the NIC does not look at the index in a control segment: it need not be
				 refreshed */
	unsigned group;       /* WQEBBs that the NIC fetches together (chain_desc.fetch_group) */
	uint64_t discard;     /* lap_check(): 8 bytes for unused old values, written in any order; 0:
				 none */
	const uint8_t *verbs; /* lap_check(): by WQEBB, 1 + what the WQE that begins there may become; 0: what
				 it is. Or NULL */
};

struct lap;

int lap_new(struct lap **l, const struct lap_env *env, unsigned sections); /* -ENOMEM */
void lap_free(struct lap *l);                                              /* NULL is fine */

/** A WQE at the end of the current section; returns its id. Fill the rest in at lap_bytes(). */
unsigned lap_add(struct lap *l, enum chain_verb verb, unsigned nsge, uint8_t flags);
uint8_t *lap_bytes(struct lap *l, unsigned id); /* until the next lap_add() */
/** The BE64 at @at of WQE @id: address of byte @offset of WQE @target, which may be added later. */
void lap_point(struct lap *l, unsigned id, unsigned at, unsigned target, unsigned offset);
/** The big-endian number of @bytes bytes at @at of WQE @id: @value in lap 0, @step more in each that follows.
 */
void lap_number(struct lap *l, unsigned id, unsigned at, unsigned bytes, uint64_t value, uint64_t step);
/** WAIT @id is for the latest CQE of the WQE @for_id, which is signalled. */
void lap_await(struct lap *l, unsigned id, unsigned for_id);
/** SEND_EN @id enables this ring through the next WQE @through: of this lap if that is still ahead, or the
 * next. */
void lap_enable(struct lap *l, unsigned id, unsigned through);
/** NOPs fill the group (env->group) that WQE @id ends in. They are put in behind every WQE that lap_enable()
 * names; the caller does the same for those through which the ring is started. */
void lap_fill_group(struct lap *l, unsigned id);

/** Bytes elsewhere, refreshed in the current section: in lap n of this ring they become @value + n * @step.
 */
void lap_refresh(struct lap *l, uint64_t addr, uint32_t key, unsigned bytes, uint64_t value, uint64_t step);
/**
 * Up to 8 bytes elsewhere that the current section puts back. @tag: 0; or a number for bytes that may be
 * unknown yet: those with the same one are equal, so that the layout does not depend on what they are.
 */
void lap_restore(
	struct lap *l, uint64_t addr, uint32_t key, const uint8_t *bytes, unsigned len, uint32_t tag);

void lap_renew(struct lap *l);   /* the section's READs go here */
void lap_advance(struct lap *l); /* and FETCH_ADDs and WRITEs */
void lap_next_section(struct lap *l);

struct lap_size {
	uint32_t wqebbs;                   /* of the lap without its pad */
	uint32_t lanes;                    /* bytes */
	unsigned wqes, copies, adds, nops; /* WQEs per lap; those that refresh, that advance, that pad */
	unsigned cqes;                     /* per lap */
};

/**
 * Lays the lap out and, unless env->ring is NULL, writes ring and lanes. 0; -E2BIG when the ring or the
 * memory for the lanes is too small; -ENOMEM. @size is filled in whenever the result is 0, or -E2BIG for the
 * ring.
 */
int lap_finish(struct lap *l, struct lap_size *size);
/** After lap_finish(): index of WQE @id in lap 0. */
uint16_t lap_index_of(const struct lap *l, unsigned id);
/** After lap_finish(): the producer index that enables the ring through WQE @id in lap 0. */
uint16_t lap_index_after(const struct lap *l, unsigned id);
/** After lap_finish(): the WQE (id) at that index; negative for one the ring added itself. */
int lap_wqe_at(const struct lap *l, uint16_t index);

#endif
