/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - a ring as data: its bytes, and relocations for what a session contributes, which are addresses,
 * keys and numbers of queues. An image is made and proven once; ring_fill() writes it for each session.
 *
 * What has an address, a key or a number of its own is a *symbol*. An address in an image is an offset from a
 * symbol.
 *
 * Thread rules: one thread makes an image; then any.
 */
#ifndef CHAIN_RING_RING_H
#define CHAIN_RING_RING_H

#include "reddnd/chain/ir/image.h"

#include <stddef.h>

/** In the order of the addresses in a session's block, as far as lanes.h looks at these. */
enum ring_symbol {
	RING_QUEUE,                   /* RING_QUEUE + q: queue q of the chain */
	RING_SELF = CHAIN_MAX_QUEUES, /* the ring of the image */
	RING_SCRATCH,
	RING_LANES,
	RING_CREDITS, /* a queue that does nothing but cause the CQEs which the ring waits for */
	RING_REGION,  /* RING_REGION + i */
	RING_SYMBOLS = RING_REGION + CHAIN_MAX_WINDOWS
};

enum { RING_SYMBOL_SHIFT = 56 };

/** The address of byte @offset of @symbol, in an image. */
static inline uint64_t ring_at(unsigned symbol, uint64_t offset)
{
	return ((uint64_t)symbol << RING_SYMBOL_SHIFT) + offset;
}

/** What a place in the ring has of a symbol. */
enum ring_field {
	RING_SEGMENT, /* a data segment: lkey and address */
	RING_REMOTE,  /* a remote address segment: address and rkey */
	RING_QPN24,   /* a BE24: QPN */
	RING_QPN,     /* a BE32 */
	RING_CQN      /* the same: CQN */
};

struct ring_reloc {
	uint32_t at; /* in the ring */
	uint8_t field, symbol;
};

/** Bytes of the lanes that are those which something else has when it is armed. */
struct ring_copy {
	uint32_t to, len; /* in the lanes */
	uint64_t from;    /* ring_at() */
};

struct ring_image {
	uint8_t *ring, *lanes;
	uint32_t wqebbs;
	uint32_t lanes_at, lanes_bytes; /* before @lanes are so many bytes of zeros */
	struct ring_reloc *relocs;
	struct ring_copy *copies;
	unsigned nrelocs, relocs_room, ncopies, copies_room;
	bool nomem; /* one that is being made lacks something: it can only be freed */
};

/** What a session, or a proof, has for each symbol that the ring names. */
struct ring_values {
	struct {
		uint64_t iova;
		uint32_t lkey, rkey, qpn, cqn;
		uint8_t *mem;
	} of[RING_SYMBOLS];
};

/** A ring of @wqebbs and @lanes_bytes of lanes, all zero. NULL: no memory. */
struct ring_image *ring_new(uint32_t wqebbs, uint32_t lanes_at, uint32_t lanes_bytes);
void ring_free(struct ring_image *r); /* NULL is fine */

/** At byte @at of the ring is @field, with address @addr, or of the symbol of it. */
void ring_name(struct ring_image *r, uint32_t at, enum ring_field field, uint64_t addr);
void ring_copies(struct ring_image *r, const struct ring_copy *copies, unsigned n);
/** It is complete. -ENOMEM, of any call before. */
int ring_done(struct ring_image *r);

/** Writes the ring, and the lanes unless their memory is NULL. What copies are from has been written. */
void ring_fill(const struct ring_image *r, const struct ring_values *v);

/** Room for one more of @n elements of @size: the array, which may have moved. Without memory sets @nomem. */
void *ring_more(bool *nomem, void *array, unsigned n, unsigned *room, size_t size);

#endif
