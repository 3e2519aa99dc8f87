/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words.h - words of a store's file, which NICs read at any time. Pure functions; thread rules: any.
 */
#ifndef STORE_WORDS_H
#define STORE_WORDS_H

#include <stdatomic.h>
#include <stdint.h>

/** The only function that stores into the file: a whole word, after all that were stored before. */
void word_set(uint64_t *word, uint64_t value);

static inline uint64_t word_get(const uint64_t *word)
{
	return atomic_load_explicit((const _Atomic uint64_t *)word, memory_order_acquire);
}

#endif
