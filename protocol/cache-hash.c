/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/cache-hash.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

static uint32_t rotate(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

/* At most 4 bytes, the first one lowest */
static uint32_t word(const uint8_t *bytes, size_t len)
{
	uint32_t w = 0;

	for (size_t i = 0; i < len && i < 4; i++)
		w |= (uint32_t)bytes[i] << 8 * i;
	return w;
}

/* ---- MurmurHash3_x86_32, by Austin Appleby (public domain) ------------------------------ */

static uint32_t murmur3_mix(uint32_t k)
{
	return rotate(k * 0xcc9e2d51, 15) * 0x1b873593;
}

static uint32_t murmur3(const uint8_t *key, size_t len)
{
	uint32_t h = 0;
	size_t i;

	for (i = 0; i + 4 <= len; i += 4)
		h = rotate(h ^ murmur3_mix(word(key + i, 4)), 13) * 5 + 0xe6546b64;
	h ^= murmur3_mix(word(key + i, len - i));
	h ^= (uint32_t)len;
	h = (h ^ h >> 16) * 0x85ebca6b;
	h = (h ^ h >> 13) * 0xc2b2ae35;
	return h ^ h >> 16;
}

/* ---- lookup3, hashlittle(), by Bob Jenkins (public domain) ------------------------------ */

static void jenkins_mix(uint32_t v[3])
{
	static const uint8_t by[] = {4, 6, 8, 16, 19, 4};

	for (unsigned i = 0; i < 6; i++) {
		uint32_t *a = &v[i % 3], *b = &v[(i + 1) % 3], *c = &v[(i + 2) % 3];

		*a = (*a - *c) ^ rotate(*c, by[i]);
		*c += *b;
	}
}

static void jenkins_final(uint32_t v[3])
{
	static const uint8_t by[] = {14, 11, 25, 16, 4, 14, 24};

	for (unsigned i = 0; i < 7; i++) {
		uint32_t *c = &v[(i + 2) % 3], *b = &v[(i + 1) % 3];

		*c = (*c ^ *b) - rotate(*b, by[i]);
	}
}

static uint32_t jenkins(const uint8_t *key, size_t len)
{
	uint32_t v[3];

	v[0] = v[1] = v[2] = 0xdeadbeef + (uint32_t)len;
	for (; len > 12; key += 12, len -= 12) {
		for (unsigned i = 0; i < 3; i++)
			v[i] += word(key + 4 * i, 4);
		jenkins_mix(v);
	}
	if (len == 0)
		return v[2];
	for (unsigned i = 0; i < 3 && len > 4 * i; i++)
		v[i] += word(key + 4 * i, len - 4 * i);
	jenkins_final(v);
	return v[2];
}

/* ----------------------------------------------------------------------------------------- */

uint32_t cache_hash(enum cache_hash kind, const void *key, size_t len)
{
	switch (kind) {
	case CACHE_HASH_MURMUR3:
		return murmur3(key, len);
	case CACHE_HASH_JENKINS:
		return jenkins(key, len);
	default:
		assert(kind == CACHE_HASH_XXH3);
		return (uint32_t)XXH3_64bits(key, len);
	}
}

const char *cache_hash_name(enum cache_hash kind)
{
	static const char *const names[CACHE_HASHES] = {"murmur3", "jenkins", "xxh3"};

	assert((unsigned)kind < CACHE_HASHES);
	return names[kind];
}
