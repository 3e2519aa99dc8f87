/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap.h - a ring that renews itself: one SQ whose WQEs run lap after lap for ever, with the NIC's index check
 * on, and no CPU that writes to it.
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
 * FETCH_ADDs and WRITEs go; lap_finish() lays it out as an image (ring.h). Sections: WQEs of section s are
 * refreshed in section s
 * + n / 2 (mod n). The caller's part, proven by lap-check.h from the ring itself: a section is enabled, WQE
 * by WQE or whole, only after a WAIT for a CQE later than the READs that refreshed it, and lap_advance()
 * comes in the last section, after its lap_renew().
 *
 * In front of the lanes is a word that counts (lap_count()), and its old value.
 *
 * The SQ is managed, and SEND_ENs of the ring enable it; or it is not, and software rings the doorbell for
 * one section after the other. The NIC may fetch a WQE as soon as it is enabled. So software rings for
 * section s only when the word has counted section s - n / 2, which comes after the WAIT (struct
 * lap_doorbell).
 *
 * Needs masked FETCH_ADD of 8 bytes. The object owns all of its allocations.
 */
#ifndef CHAIN_RING_LAP_H
#define CHAIN_RING_LAP_H

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ir/verbs.h"
#include "reddnd/chain/ring/ring.h"

#include <stddef.h>

enum {
	LAP_MAX_SECTIONS = 8,
	LAP_MAX_SGE = 30, /* of a READ or WRITE of its own: 512 bytes, what every ConnectX takes */
	LAP_WQE_BYTES = 512,
	LAP_MIN_RING = 256,
	LAP_HEAD =
		64, /* bytes before the lanes: what lap_count() adds to, little-endian, and its old value */
	LAP_NOWHERE = 64, /* bytes at the end of the lanes that take unused data */
};

struct lap_env {
	uint32_t wqebbs;    /* of the ring: a power of two, LAP_MIN_RING to 32768 */
	uint32_t lanes_at;  /* where lanes begin in their memory: a multiple of 64, LAP_HEAD or more */
	uint32_t first_cqe; /* number of the first CQE this queue will cause */
	bool ignores_index; /* the NIC does not look at the index in a control segment: it need not be
			       refreshed */
	unsigned group;     /* WQEBBs that the NIC fetches together (chain_desc.fetch_group) */
};

struct lap;

int lap_new(struct lap **l, const struct lap_env *env, unsigned sections); /* -ENOMEM */
void lap_free(struct lap *l);                                              /* NULL is fine */

/** A WQE at the end of the current section; returns its id. Fill the rest in at lap_bytes(), but what depends
 * on a symbol: that has no bytes there. */
unsigned lap_add(struct lap *l, enum chain_verb verb, unsigned nsge, uint8_t flags);
uint8_t *lap_bytes(struct lap *l, unsigned id); /* until the next lap_add() */
/** At @at of WQE @id is @field, with address @addr, or of the symbol of it. */
void lap_name(struct lap *l, unsigned id, unsigned at, enum ring_field field, uint64_t addr);
/** The same with the address of byte @offset of WQE @target, which may be added later. */
void lap_point(
	struct lap *l, unsigned id, unsigned at, enum ring_field field, unsigned target, unsigned offset);
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

/** A FETCH_ADD of @n to the word in front of the lanes. */
void lap_count(struct lap *l, unsigned n);

/** Bytes elsewhere, refreshed in the current section: in lap n of this ring they become @value + n * @step.
 */
void lap_refresh(struct lap *l, uint64_t addr, unsigned bytes, uint64_t value, uint64_t step);
/**
 * Up to 8 bytes elsewhere that the current section puts back. @tag: 0; or a number for bytes that depend on a
 * symbol: those with the same one are equal, and they are what is there when the ring is filled in.
 */
void lap_restore(struct lap *l, uint64_t addr, const uint8_t *bytes, unsigned len, uint32_t tag);

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
 * Lays the lap out and, unless @image is NULL, makes the image of it. 0; -E2BIG when the ring is too small;
 * -ENOMEM. @size is filled in whenever the result is 0 or -E2BIG.
 */
int lap_finish(struct lap *l, struct lap_size *size, struct ring_image **image);

/**
 * Of a ring whose SQ is not managed. Software rings for sections one after the other, up to @sections / 2
 * more than the word in front of the lanes has counted, when it has seen that number there.
 */
struct lap_doorbell {
	unsigned sections;
	unsigned count; /* what each of them adds to the word */
	/* By section: producer index that enables the ring through its end, in lap 0. Of WQEs behind the last
	 * one the doorbell of the next lap takes care */
	uint16_t end[LAP_MAX_SECTIONS];
};

/** What the proof of an image looks at, beside it. */
struct lap_proof {
	uint16_t start;                      /* producer index that starts the ring */
	const struct lap_doorbell *doorbell; /* in place of .start; NULL: the ring enables itself */
	const uint8_t *verbs;                /* as of struct lap_made */
	uint64_t discard;                    /* the same, of the image */
	unsigned shared; /* a region that is in the block of the session, as rings, lanes and scratch */
};

/** lap_check() of what ring_fill() writes: with one key for the block of a session and one for each region
 * that is elsewhere. @env: of the lap. CHAIN_REFUSED with the reason in @err; -ENOMEM. */
int lap_prove(const struct ring_image *image, const struct lap_env *env, const struct lap_proof *proof,
	struct chain_error *err);

/** After lap_finish(): index of WQE @id in lap 0. */
uint16_t lap_index_of(const struct lap *l, unsigned id);
/** After lap_finish(): the producer index that enables the ring through WQE @id in lap 0. */
uint16_t lap_index_after(const struct lap *l, unsigned id);

#endif
