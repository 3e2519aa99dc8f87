/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table-hash.h - the two buckets of a key, and the words of a bucket. table-format.h has the definition;
 * writer, client and tests share this implementation. Pure functions.
 */
#ifndef PROTOCOL_TABLE_HASH_H
#define PROTOCOL_TABLE_HASH_H

#include "protocol/table-format.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* For short keys a call of the library is as many instructions as the hash */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "table words are read in place");

/** Fingerprint and buckets of a key. */
struct reddn_place {
	uint64_t fp;        /* 48 bits, no byte of which is the tag */
	uint64_t bucket[2]; /* two different ones, in probe order */
};

/** The other bucket of an entry with fingerprint `fp` that is in bucket `b`. */
static inline uint64_t reddn_hash_other(uint64_t b, uint64_t fp, uint64_t buckets)
{
	uint64_t mix = (fp * 0x9e3779b97f4a7c15ull) >> 20;

	if (!(mix & (buckets - 1)))
		mix |= 1;
	return (b ^ mix) & (buckets - 1);
}

/** The fingerprint in the low bits of a hash. */
static inline uint64_t reddn_hash_fp(uint64_t hash)
{
	const uint64_t whole = (1ull << 48) - 1;
	uint64_t fp = hash & whole, low = 0x7f7f7f7f7f7full, other = fp ^ low / 0x7f * REDDN_TABLE_TAG;
	/* the highest bit of each byte is 0 where that is the tag */
	uint64_t untagged = ((other & low) + low) | other | low;

	if (__builtin_expect(untagged == whole, 1))
		return fp;
	return fp ^ (~untagged >> 7 & low / 0x7f) * 0xff;
}

/** The mark, second word of a bucket in use. */
static inline uint64_t reddn_mark(uint64_t fp)
{
	return (uint64_t)REDDN_TABLE_TAG << 48 | fp;
}

static inline uint64_t reddn_mark_fp(uint64_t word)
{
	return word & ((1ull << 48) - 1);
}

/** The place of a key with this hash. `buckets`: a power of two, at least 2. */
static inline struct reddn_place reddn_hash_place(XXH128_hash_t h, uint64_t buckets)
{
	struct reddn_place p = {.fp = reddn_hash_fp(h.low64)};

	p.bucket[0] = h.high64 & (buckets - 1);
	p.bucket[1] = reddn_hash_other(p.bucket[0], p.fp, buckets);
	return p;
}

static inline struct reddn_place reddn_hash_key(uint64_t seed, uint64_t buckets, const void *key, size_t len)
{
	return reddn_hash_place(XXH3_128bits_withSeed(key, len, seed), buckets);
}

/** True if the two keys cannot both be in a table, because fingerprint and bucket do not distinguish them. */
static inline int reddn_place_same(const struct reddn_place *a, const struct reddn_place *b)
{
	return a->fp == b->fp && (a->bucket[0] == b->bucket[0] || a->bucket[0] == b->bucket[1]);
}

/** The locator, first word of a bucket: len and off, big-endian. */
static inline uint64_t reddn_locator(uint64_t off, uint64_t len)
{
	return htobe64(len << 40 | off);
}

/** The expiry in front of a @record of a store; 0: it has none. */
static inline uint64_t reddn_store_expiry(const uint8_t *record)
{
	uint64_t expiry = 0;

	memcpy((uint8_t *)&expiry + sizeof(expiry) - REDDN_STORE_EXPIRY, record - REDDN_STORE_EXPIRY,
		REDDN_STORE_EXPIRY);
	return be64toh(expiry);
}

static inline uint64_t reddn_locator_off(uint64_t word)
{
	return be64toh(word) & ((1ull << 40) - 1);
}

static inline uint32_t reddn_locator_len(uint64_t word)
{
	return (uint32_t)(be64toh(word) >> 40);
}

/** The right checksum for the @len bytes of a record, the key first. @lengths: that of the key << 32 | that
 * of the value. */
static __attribute__((noinline, unused)) uint64_t reddn_record_sum_of(
	const uint8_t *bytes, size_t len, uint64_t lengths)
{
	return XXH3_64bits_withSeed(bytes, len, lengths);
}

/** The same for a record in memory that nobody changes meanwhile. */
static inline uint64_t reddn_record_sum(const struct reddn_record *r)
{
	return reddn_record_sum_of(
		r->bytes, (size_t)r->key_len + r->val_len, (uint64_t)r->key_len << 32 | r->val_len);
}

#endif
