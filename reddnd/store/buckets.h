/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buckets.h - the buckets of a store, and where keys are in them. Thread rules: one thread.
 */
#ifndef STORE_BUCKETS_H
#define STORE_BUCKETS_H

#include "protocol/table-hash.h"
#include "reddnd/store/words.h"

#include <stdbool.h>

struct buckets {
	uint64_t *words; /* two of each: locator, mark */
	uint64_t n;
	uint32_t header; /* bytes before a record */
	uint32_t most;   /* and with the longest that the store can have */
	uint64_t null;   /* the locator of the null extent */
};

/** What a bucket in use has. */
enum bucket_kind {
	BUCKET_FRESH,     /* its key has had no record yet */
	BUCKET_TOMBSTONE, /* it has none any more */
	BUCKET_RECORD,
	BUCKET_WRONG, /* a length that no client may publish, or a longer record than the store can have */
	BUCKET_KINDS
};

static inline uint64_t *bucket_locator(const struct buckets *b, uint64_t n)
{
	return &b->words[2 * n];
}

static inline uint64_t *bucket_mark(const struct buckets *b, uint64_t n)
{
	return &b->words[2 * n + 1];
}

static inline bool bucket_is_empty(const struct buckets *b, uint64_t n)
{
	return !word_get(bucket_mark(b, n));
}

static inline enum bucket_kind bucket_kind(const struct buckets *b, uint64_t locator)
{
	uint32_t len = reddn_locator_len(locator);

	if (locator == b->null)
		return BUCKET_FRESH;
	if (len == b->header)
		return BUCKET_TOMBSTONE;
	return len <= b->most && reddn_store_length_ok(b->header, len) ? BUCKET_RECORD : BUCKET_WRONG;
}

/** The other bucket of the entry with @mark that is in @n. */
static inline uint64_t bucket_other(const struct buckets *b, uint64_t n, uint64_t mark)
{
	return reddn_hash_other(n, reddn_mark_fp(mark), b->n);
}

/** True if a word can be a mark of a bucket in use. */
static inline bool bucket_is_mark(uint64_t word)
{
	return word == reddn_mark(reddn_hash_fp(word));
}

#endif
