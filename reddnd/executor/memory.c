/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/memory.h"

#include <string.h>

static bool is_aligned(const void *p)
{
	return (uintptr_t)p % sizeof(uint64_t) == 0;
}

static void copy_byte(uint8_t *to, const uint8_t *from)
{
	__atomic_store_n(to, __atomic_load_n(from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Acquire and release: a READ comes before what the chain does after it, as behind the fence of a NIC */
static void copy_forward(uint8_t *to, const uint8_t *from, size_t len)
{
	for (; len && !is_aligned(from); len--)
		copy_byte(to++, from++);
	for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t)) {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);

		if (is_aligned(to))
			__atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
		else
			memcpy(to, &word, sizeof(word));
		from += sizeof(word);
		to += sizeof(word);
	}
	for (; len; len--)
		copy_byte(to++, from++);
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
