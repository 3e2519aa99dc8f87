/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lanes.h - private to lap.c: decides which numbers share a lane, where lanes lie, and which READs copy them
 * where.
 *
 * Memory of lanes is planned as three arrays of bytes: the first values, what a lap adds, and the field
 * boundaries (0x80 in the last byte of each lane). A lane is little-endian and inside one 64-bit word.
 */
#ifndef CHAIN_RING_LANES_H
#define CHAIN_RING_LANES_H

#include <stdbool.h>
#include <stdint.h>

struct lane_field {
	uint64_t addr; /* of a big-endian number, or of fixed bytes */
	uint32_t key;
	uint8_t section;
	uint8_t bytes;        /* 1 to 4; fixed: 1 to 8 */
	bool fixed;           /* @value has the bytes in memory order, first byte lowest */
	uint64_t value, step; /* in lap n: value + n * step */
	uint32_t tag;         /* not 0: equal to those with the same tag, whatever @value is */
};

struct lane_sge {
	uint64_t addr;
	uint32_t key, len; /* key 0: to nowhere */
};

struct lane_read {
	uint8_t section, nsge;
	uint32_t from; /* offset in the lanes */
	struct lane_sge *sge;
};

struct lanes {
	uint8_t *init, *add, *bound; /* size bytes each */
	uint32_t size, room;         /* size: a multiple of 8 */
	struct lane_read *reads;
	unsigned nreads, reads_room;
	bool nomem;
};

/** Plans for @n fields, which are reordered; at most @max_sge data segments per READ. 0 or -ENOMEM. */
int lanes_plan(struct lanes *l, struct lane_field *fields, unsigned n, unsigned sections, unsigned max_sge);
void lanes_free(struct lanes *l);

/** FETCH_ADDs of a lap. */
unsigned lanes_adds(const struct lanes *l);
bool lanes_word_moves(const struct lanes *l, uint32_t word);

#endif
