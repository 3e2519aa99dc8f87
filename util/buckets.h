/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buckets.h - which bucket of a histogram a value is in. Values below 2^bits have buckets of their own; then
 * each power of two has 2^bits, so the width of a bucket is at most 2^-bits of its values. Pure.
 */
#ifndef UTIL_BUCKETS_H
#define UTIL_BUCKETS_H

#include <stdint.h>

/** Buckets of values below 2^@width. */
#define BUCKETS(width, bits) (((width) - (bits) + 1) << (bits))

static inline unsigned bucket_of(uint64_t value, unsigned bits)
{
	unsigned shift;

	if (value < UINT64_C(1) << bits)
		return (unsigned)value;
	shift = 63 - bits - (unsigned)__builtin_clzll(value);
	return ((shift + 1) << bits) + (unsigned)((value >> shift) - (UINT64_C(1) << bits));
}

/** The largest value of a bucket. */
static inline uint64_t bucket_top(unsigned bucket, unsigned bits)
{
	uint64_t part = bucket & ((1u << bits) - 1);
	unsigned shift = bucket >> bits;

	return shift == 0 ? part : ((part + (UINT64_C(1) << bits) + 1) << (shift - 1)) - 1;
}

#endif
