/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - numbers of a test that repeats itself by its seed. For one thread. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include "util/xorshift.h"

#include <stdint.h>

static uint64_t rng = 1;

static inline void random_seed(uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ull | 1;
}

static inline uint64_t rnd(uint64_t below)
{
	return (xorshift(&rng) >> 11) % below;
}

#endif
