/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/memory.h"

#include <string.h>

/* A part of a word, which is read as one */
static void copy_part(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t off = (uintptr_t)from % sizeof(uint64_t);
	uint64_t word = memory_load(from - off);

	memory_copy_part(to, (const uint8_t *)&word + off, len);
}

static void copy_words_to_bytes(uint8_t *to, const uint8_t *from, size_t words)
{
	for (; words; words--, to += sizeof(uint64_t), from += sizeof(uint64_t)) {
		uint64_t word = memory_load(from);

		memcpy(to, &word, sizeof(word));
	}
}

static void copy_forward(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t head = -(uintptr_t)from % sizeof(uint64_t), words;

	if (head) {
		head = head < len ? head : len;
		copy_part(to, from, head);
		to += head;
		from += head;
		len -= head;
	}
	words = len / sizeof(uint64_t);
	if (memory_is_aligned(to))
		memory_copy_words(to, from, words * sizeof(uint64_t));
	else
		copy_words_to_bytes(to, from, words);
	words *= sizeof(uint64_t);
	if (len > words)
		copy_part(to + words, from + words, len - words);
}

void memory_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	if (to + len <= from || from + len <= to)
		copy_forward(to, from, len);
	else
		memmove(to, from, len); /* of the chain's own, or of a region that it writes */
}

uint64_t memory_swap(
	uint8_t *target, uint64_t swap, uint64_t compare, uint64_t swap_mask, uint64_t compare_mask)
{
	uint64_t *word = (uint64_t *)(void *)target, old = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	while (((old ^ compare) & compare_mask) == 0)
		if (__atomic_compare_exchange_n(word, &old, (old & ~swap_mask) | (swap & swap_mask), false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break;
	return old;
}

/* A carry out of a bit of @boundary is lost: without these bits nothing is carried out of a field, and each
 * of them is the sum of itself and of what comes in */
static uint64_t sum(uint64_t a, uint64_t b, uint64_t boundary)
{
	return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

uint64_t memory_add(uint8_t *target, uint64_t add, uint64_t boundary)
{
	uint64_t *word = (uint64_t *)(void *)target, old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		word, &old, sum(old, add, boundary), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}
