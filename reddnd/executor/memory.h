/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - the memory that an executor reaches: spaces, each with a key and addresses of its own, as
 * windows of a NIC have. Copies and atomics on it. Private to the executor.
 */
#ifndef EXECUTOR_MEMORY_H
#define EXECUTOR_MEMORY_H

#include "reddnd/chain/ir/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
	MEMORY_OWN,  /* WQEs and scratch of the chain */
	MEMORY_SLOT, /* of the client: nothing is there */
	MEMORY_REGIONS,
	MEMORY_SPACES = MEMORY_REGIONS + CHAIN_MAX_WINDOWS,
};

struct memory_space {
	uint8_t *mem;
	uint64_t size;
	bool writable;
};

struct memory {
	struct memory_space space[MEMORY_SPACES];
};

/** Far apart, and multiples of 2^56: an offset of up to 7 bytes that is patched into an address stays in its
 * space, or is beyond the end of it. */
static inline uint64_t memory_address(unsigned space)
{
	return (uint64_t)(space + 1) << 56;
}

static inline uint32_t memory_key(unsigned space)
{
	return 0xc0de0000u + space;
}

/** True if @key is that of @space, and [@addr, @addr + @len) is in it. */
static inline bool memory_has(
	const struct memory *m, unsigned space, uint32_t key, uint64_t addr, uint64_t len)
{
	uint64_t at = addr - memory_address(space), size = m->space[space].size;

	return key == memory_key(space) && at <= size && len <= size - at;
}

/** Where that is, in whatever space has the key; NULL: nowhere, or not to be written. Nothing is in the slot.
 */
static inline uint8_t *memory_at(
	const struct memory *m, uint32_t key, uint64_t addr, uint64_t len, bool writes)
{
	unsigned space = key - memory_key(0);

	if (space >= MEMORY_SPACES || space == MEMORY_SLOT || !memory_has(m, space, key, addr, len))
		return NULL;
	if (writes && !m->space[space].writable)
		return NULL;
	return m->space[space].mem + (addr - memory_address(space));
}

static inline bool memory_is_aligned(const void *p)
{
	return (uintptr_t)p % sizeof(uint64_t) == 0;
}

/** As memmove(), but words are read as one, also where only a part of one is wanted, and written as one if
 * they are aligned there too. All of the word must be there. */
void memory_copy(uint8_t *to, const uint8_t *from, size_t len);

/** True if @p, which is somewhere, is in the chain's own memory. */
static inline bool memory_is_own(const struct memory *m, const uint8_t *p)
{
	const struct memory_space *own = &m->space[MEMORY_OWN];

	return (uintptr_t)p - (uintptr_t)own->mem < own->size;
}

/** As memcpy(), of less than 8 bytes. */
static inline void memory_copy_part(uint8_t *to, const uint8_t *from, size_t len)
{
	uint32_t head, tail;

	if (len >= sizeof(head)) {
		memcpy(&head, from, sizeof(head));
		memcpy(&tail, from + len - sizeof(tail), sizeof(tail));
		memcpy(to, &head, sizeof(head));
		memcpy(to + len - sizeof(tail), &tail, sizeof(tail));
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

/** As memory_copy() of few bytes to where nobody else is: returns where they are, in @to, which has room for
 * two words more. */
static inline const uint8_t *memory_read(uint64_t *to, const uint8_t *from, size_t len)
{
	const size_t off = (uintptr_t)from % sizeof(*to);
	const uint64_t *word = (const uint64_t *)(const void *)(from - off);

	for (size_t i = 0; i * sizeof(*to) < off + len; i++)
		to[i] = __atomic_load_n(word + i, __ATOMIC_ACQUIRE);
	return (const uint8_t *)to + off;
}

/* Acquire: a READ comes before what the chain does after it, as behind the fence of a NIC */
static inline uint64_t memory_load(const uint8_t *aligned)
{
	return __atomic_load_n((const uint64_t *)(const void *)aligned, __ATOMIC_ACQUIRE);
}

static inline void memory_store(uint8_t *aligned, uint64_t word)
{
	__atomic_store_n((uint64_t *)(void *)aligned, word, __ATOMIC_RELEASE);
}

/** As memory_copy() of aligned words that do not overlap. Unrolled by hand, as compilers leave atomics alone.
 */
static inline void memory_copy_words(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t i = 0;

	for (; i + 32 <= len; i += 32) {
		uint64_t a = memory_load(from + i), b = memory_load(from + i + 8),
			 c = memory_load(from + i + 16), d = memory_load(from + i + 24);

		memory_store(to + i, a);
		memory_store(to + i + 8, b);
		memory_store(to + i + 16, c);
		memory_store(to + i + 24, d);
	}
	for (; i < len; i += sizeof(uint64_t))
		memory_store(to + i, memory_load(from + i));
}

/* Atomics of 8 bytes at an aligned place; they return the old value */
uint64_t memory_swap(
	uint8_t *target, uint64_t swap, uint64_t compare, uint64_t swap_mask, uint64_t compare_mask);
/** Adds fields of a word each by itself: a bit of @boundary ends a field. */
uint64_t memory_add(uint8_t *target, uint64_t add, uint64_t boundary);

#endif
