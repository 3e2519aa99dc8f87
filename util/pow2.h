/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pow2.h - sizes of rings.
 */
#ifndef UTIL_POW2_H
#define UTIL_POW2_H

#include <stdint.h>

/** The smallest power of two that is at least @n, which is at most 2^63. */
static inline uint64_t pow2_at_least(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

#endif
