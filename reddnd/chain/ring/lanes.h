/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.h - private to lap.c: the numbers that a lap refreshes, and the work requests that do so.
 *
 * A *lane* is a little-endian number inside one 64-bit word; a masked FETCH_ADD per word moves its lanes on.
 * Equal numbers have one lane, wherever they are. WRITEs gather bytes of lanes into *copies*, beside each
 * other in the order in which the READs of each section scatter them. A number whose lowest byte changes by a
 * multiple of a power of two has a lane of that byte for itself; the bytes above it are the same for all
 * numbers that differ in the bits below the power, since none of these ever carries.
 */
#ifndef CHAIN_RING_LANES_H
#define CHAIN_RING_LANES_H

#include "reddnd/chain/ring/lap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane_field {
	uint64_t addr; /* of a big-endian number, or of fixed bytes */
	uint8_t section;
	uint8_t bytes;        /* 1 to 4; fixed: 1 to 8 */
	uint8_t above;        /* bytes of the number below these, which are another field */
	bool fixed;           /* @value has the bytes in memory order, first byte lowest */
	uint64_t value, step; /* in lap n: value + n * step */
	uint32_t tag;         /* not 0: equal to those with the same tag, and what is at @addr */
};

struct lane_sge {
	uint64_t addr; /* of a WRITE: offset in the lanes */
	uint32_t len;
};

/** A READ of copies, or the WRITE of some. */
struct lane_move {
	uint32_t at; /* offset in the lanes of what it reads or writes */
	uint8_t nsge;
	bool fixed; /* it reads fixed bytes */
	struct lane_sge *sge;
};

struct lane_moves {
	struct lane_move *v;
	unsigned n, room;
};

enum { LANE_WRITES = LAP_MAX_SECTIONS }; /* in the place of a section */

/** Words with lanes come first, then copies and fixed bytes. */
struct lanes {
	uint8_t *init; /* size bytes, a multiple of 8 */
	uint32_t size;
	uint64_t *add, *bound; /* by word: what a lap adds; the last bit of each lane */
	unsigned nwords;
	struct lane_moves moves[LAP_MAX_SECTIONS + 1]; /* by section, and WRITEs */
	struct ring_copy *backs;                       /* fixed bytes that have a tag */
	unsigned nbacks, backs_room;
};

/** Plans for @n fields, at most @max_sge data segments per READ or WRITE. 0 or -ENOMEM. */
int lanes_plan(struct lanes *l, const struct lane_field *fields, unsigned n, unsigned max_sge);
void lanes_free(struct lanes *l);

#endif
