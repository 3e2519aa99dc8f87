/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-parts.h - private to lap*.c: what a lap is made of. lap.c takes the WQEs of the caller (entries),
 * lap-layout.h gives everything its place in the ring (items), and lap-bytes.h writes ring and lanes.
 *
 * After an allocation has failed (nomem) the object can only be freed.
 */
#ifndef CHAIN_RING_LAP_PARTS_H
#define CHAIN_RING_LAP_PARTS_H

#include "reddnd/chain/ring/lanes.h"
#include "reddnd/chain/ring/lap.h"

#include <stdbool.h>

enum {
	LAP_WQEBB = 64, /* bytes */
	LAP_POINTS = LAP_MAX_SGE + 1,
	LAP_NUMBERS = 2,
	LAP_NONE = 0xffffffff,
};

/* A WQE that the caller added, or the place of some that the ring adds */
struct lap_entry {
	uint8_t wqe[LAP_WQE_BYTES];
	uint8_t section;
	enum { LAP_GIVEN, LAP_RENEW, LAP_ADVANCE } kind;
	bool fills;               /* the group that it ends in has nothing else */
	unsigned for_id, through; /* LAP_NONE, or: WAIT for that, SEND_EN through that */
	unsigned npoints, nnumbers;
	struct {
		uint16_t at, offset;
		unsigned target;
	} point[LAP_POINTS];
	struct {
		uint8_t at, bytes;
		uint64_t value, step;
	} number[LAP_NUMBERS];
};

/* A WQE of the laid out ring */
struct lap_item {
	uint32_t at; /* WQEBB */
	uint8_t wqebbs, section;
	bool signalled;
	uint32_t cqe;
	enum { LAP_ITEM_ENTRY, LAP_ITEM_READ, LAP_ITEM_WRITE, LAP_ITEM_ADD, LAP_ITEM_NOP } kind;
	unsigned index; /* of the entry, the READ in its section, the WRITE, or the word of lanes */
};

struct lap {
	struct lap_env env;
	unsigned sections, section;
	struct lap_entry *entries;
	unsigned nentries, entries_room;
	struct lane_field *outside, *fields;
	unsigned noutside, outside_room, nfields, fields_room;
	struct lap_item *items;
	unsigned nitems, items_room;
	unsigned *item_of; /* by entry */
	/* Places for FETCH_ADDs, and for READs and WRITEs as struct lanes has them */
	unsigned adds;
	struct {
		uint8_t *wqebbs;
		unsigned n, room;
	} moves[LAP_MAX_SECTIONS + 1];
	unsigned cqes;
	uint32_t used;
	bool awaited, nomem;
};

/** Room for one more of @n elements of @size: the array, which may have moved. Without memory sets nomem. */
void *lap_more(struct lap *l, void *array, unsigned n, unsigned *room, size_t size);

/** WQEBBs of @ds segments. */
unsigned lap_wqebbs(unsigned ds);
/** The place of WQE @id, and the WQEBB behind one. */
const struct lap_item *lap_item_of(const struct lap *l, unsigned id);
uint32_t lap_item_end(const struct lap_item *it);

#endif
