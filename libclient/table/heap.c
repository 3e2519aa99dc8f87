/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/table/impl.h"

#include "protocol/table-format.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static uint64_t granules_of(uint64_t len)
{
	return (len + REDDN_HEAP_GRANULE - 1) / REDDN_HEAP_GRANULE;
}

int reddn_heap_init(struct reddn_heap *h, uint64_t size)
{
	*h = (struct reddn_heap){.granules = size / REDDN_HEAP_GRANULE};
	h->bitmap = calloc((h->granules + 63) / 64, sizeof(uint64_t));
	h->queue = calloc(REDDN_HEAP_QUEUE, sizeof(*h->queue));
	if (!h->bitmap || !h->queue) {
		reddn_heap_deinit(h);
		return -ENOMEM;
	}
	return 0;
}

void reddn_heap_deinit(struct reddn_heap *h)
{
	free(h->bitmap);
	free(h->queue);
	*h = (struct reddn_heap){0};
}

/* First granule in [pos, end) whose bit is `set`; `end` if there is none. */
static uint64_t next_bit(const struct reddn_heap *h, uint64_t pos, uint64_t end, bool set)
{
	while (pos < end) {
		uint64_t word = h->bitmap[pos / 64];

		word = (set ? word : ~word) >> (pos % 64);
		if (word) {
			pos += (uint64_t)__builtin_ctzll(word);
			return pos < end ? pos : end;
		}
		pos = (pos / 64 + 1) * 64;
	}
	return end;
}

static void set_bits(struct reddn_heap *h, uint64_t first, uint64_t count, bool set)
{
	uint64_t end = first + count;

	while (first < end) {
		uint64_t bit = first % 64;
		uint64_t n = end - first < 64 - bit ? end - first : 64 - bit;
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << bit;

		if (set)
			h->bitmap[first / 64] |= mask;
		else
			h->bitmap[first / 64] &= ~mask;
		first += n;
	}
}

int reddn_heap_reserve(struct reddn_heap *h, uint64_t off, uint64_t len)
{
	uint64_t first = off / REDDN_HEAP_GRANULE, n = granules_of(len);

	if (off % REDDN_HEAP_GRANULE || !n || first >= h->granules || n > h->granules - first)
		return -EINVAL;
	if (next_bit(h, first, first + n, true) != first + n)
		return -EEXIST;
	set_bits(h, first, n, true);
	h->taken += n;
	return 0;
}

static bool find_run(const struct reddn_heap *h, uint64_t pos, uint64_t n, uint64_t *first)
{
	while (pos < h->granules && n <= h->granules - pos) {
		uint64_t start = next_bit(h, pos, h->granules, false);

		pos = reddn_untagged(start * REDDN_HEAP_GRANULE) / REDDN_HEAP_GRANULE;
		if (pos != start)
			continue;
		if (n > h->granules - start)
			return false;
		pos = next_bit(h, start, start + n, true);
		if (pos == start + n) {
			*first = start;
			return true;
		}
	}
	return false;
}

/* Free the extent that waited longest. */
static void release_oldest(struct reddn_heap *h)
{
	struct reddn_heap_extent *e = &h->queue[h->tail++ % REDDN_HEAP_QUEUE];

	set_bits(h, e->first, e->count, false);
	h->taken -= e->count;
	h->queued -= e->count;
}

int reddn_heap_alloc(struct reddn_heap *h, uint64_t len, uint64_t *off)
{
	uint64_t n = granules_of(len), first;

	assert(n);
	if (n > h->granules - h->taken + h->queued)
		return -ENOSPC;
	while (!find_run(h, h->cursor, n, &first) && !find_run(h, 0, n, &first)) {
		uint32_t waiting = h->head - h->tail;

		if (!waiting)
			return -ENOSPC;
		/* Half of them at a time: the youngest wait on, and a large heap is searched ten times at
		 * most. */
		for (uint32_t i = 0; i < (waiting + 1) / 2; i++)
			release_oldest(h);
	}
	set_bits(h, first, n, true);
	h->taken += n;
	h->cursor = first + n;
	*off = first * REDDN_HEAP_GRANULE;
	return 0;
}

void reddn_heap_free(struct reddn_heap *h, uint64_t off, uint64_t len)
{
	uint64_t n = granules_of(len);

	if (h->head - h->tail == REDDN_HEAP_QUEUE)
		release_oldest(h);
	h->queue[h->head++ % REDDN_HEAP_QUEUE] = (struct reddn_heap_extent){off / REDDN_HEAP_GRANULE, n};
	h->queued += n;
}

uint64_t reddn_heap_used(const struct reddn_heap *h)
{
	return (h->taken - h->queued) * REDDN_HEAP_GRANULE;
}
