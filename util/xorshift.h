/* SPDX-License-Identifier: BSD-2-Clause */
/* xorshift.h - pseudo-random numbers that a seed repeats: xorshift64 (Marsaglia, 2003). Pure. */
#ifndef UTIL_XORSHIFT_H
#define UTIL_XORSHIFT_H

#include <stdint.h>

/** The next one; @state is that afterwards, and never 0. The high bits are the better ones. */
static inline uint64_t xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

#endif
