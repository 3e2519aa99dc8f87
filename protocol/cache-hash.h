/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cache-hash.h - the hash functions that memcached has for its table (hash.c): the low bits choose the
 * bucket.
 */
#ifndef PROTOCOL_CACHE_HASH_H
#define PROTOCOL_CACHE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum cache_hash {
	CACHE_HASH_MURMUR3, /* MurmurHash3_x86_32 with the seed 0: the default */
	CACHE_HASH_JENKINS, /* hashlittle() of lookup3, with 0 */
	CACHE_HASH_XXH3,    /* low 32 bits of XXH3_64bits() */
	CACHE_HASHES,
};

uint32_t cache_hash(enum cache_hash kind, const void *key, size_t len);

/** As in `stats settings`, hash_algorithm. */
const char *cache_hash_name(enum cache_hash kind);

#endif
