/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hopscotch.h - the entries of a table in an array as FaRM keeps them: an entry lies in one of the NEIGHBOURS
 * buckets that begin at the place of its hash, so that one READ gets all of them. Buckets have the two
 * words of table-format.h and point into the table's heap.
 */
#ifndef TESTS_BENCH_WAYS_HOPSCOTCH_H
#define TESTS_BENCH_WAYS_HOPSCOTCH_H

#include "protocol/table-hash.h"

#include <stddef.h>

enum { HOPSCOTCH_NEIGHBOURS = 6 };

struct hopscotch {
	uint64_t *words; /* two to a bucket */
	uint64_t places; /* power of two; HOPSCOTCH_NEIGHBOURS - 1 more buckets follow them */
};

static inline size_t hopscotch_bytes(uint64_t places)
{
	return (places + HOPSCOTCH_NEIGHBOURS - 1) * sizeof(struct reddn_bucket);
}

/** -ENOMEM. @table: of @hdr->file_size bytes. */
int hopscotch_build(struct hopscotch *h, const struct reddn_table_header *hdr, const uint8_t *table);
void hopscotch_deinit(struct hopscotch *h);

/** First bucket of the neighbourhood of a key. */
static inline uint64_t hopscotch_place(const struct reddn_place *p, uint64_t places)
{
	return (p->fp * 0x9e3779b97f4a7c15ull) >> 8 & (places - 1);
}

#endif
