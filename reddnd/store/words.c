/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/store/words.h"

void word_set(uint64_t *word, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
}
