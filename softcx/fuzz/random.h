/* SPDX-License-Identifier: BSD-2-Clause */
/* random.h - the fuzzer's choices: a generator whose state is a word, and values that often break programs.
 */
#ifndef SOFTCX_FUZZ_RANDOM_H
#define SOFTCX_FUZZ_RANDOM_H

#include "util/array.h"

#include <stdint.h>
#include <string.h>

/** splitmix64: good from any start, so that a start can be a seed plus a number. */
static inline uint64_t fuzz_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/** Number in [0, n), n > 0. */
static inline uint32_t fuzz_pick(uint64_t *state, uint32_t n)
{
	return (uint32_t)(((fuzz_random(state) >> 32) * n) >> 32);
}

/** A start that depends on all three. */
static inline uint64_t fuzz_start(uint64_t seed, uint64_t number, uint64_t step)
{
	uint64_t s = seed;

	s = fuzz_random(&s) ^ number;
	s = fuzz_random(&s) ^ step;
	return fuzz_random(&s);
}

/** A word: small, at a limit, near a power of two, or any. */
static inline uint64_t fuzz_word(uint64_t *state)
{
	static const uint64_t limits[] = {0, 1, UINT64_MAX, INT32_MAX, 0x80000000, UINT32_MAX, 0xffffff,
		0x1000000, 0xffff, 0x10000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffff000, 4096,
		64, 63, 65};

	switch (fuzz_pick(state, 4)) {
	case 0:
		return fuzz_pick(state, 20);
	case 1:
		return limits[fuzz_pick(state, COUNT(limits))];
	case 2:
		return (1ULL << fuzz_pick(state, 64)) + fuzz_pick(state, 3) - 1;
	default:
		return fuzz_random(state);
	}
}

#endif
