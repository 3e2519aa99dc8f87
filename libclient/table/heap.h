/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - allocator of a table's heap. Its state is in the writer's private memory. Opening a table rebuilds
 * it from the buckets, so a crash cannot damage it.
 *
 * It allocates granules of 64 bytes, from offsets without the tag (table-format.h), next-fit: the search goes
 * round the heap, and freed space waits in a queue before it is free again. Both keep the time between free
 * and reuse as long as the heap allows, because a NIC may still read the old record. Not thread-safe.
 */
#ifndef LIBCLIENT_TABLE_HEAP_H
#define LIBCLIENT_TABLE_HEAP_H

#include <stdint.h>

enum { REDDN_HEAP_GRANULE = 64, REDDN_HEAP_QUEUE = 1024 };

struct reddn_heap {
	uint64_t granules;
	uint64_t taken;  /* granules that are not free, waiting ones included */
	uint64_t queued; /* waiting granules */
	uint64_t cursor;
	uint64_t *bitmap; /* 1: taken */
	struct reddn_heap_extent {
		uint64_t first;
		uint64_t count;
	} * queue; /* ring of REDDN_HEAP_QUEUE */
	uint32_t head, tail;
};

/** A heap of `size` bytes (a multiple of the granule), all free. -ENOMEM. */
int reddn_heap_init(struct reddn_heap *h, uint64_t size);
void reddn_heap_deinit(struct reddn_heap *h);

/** Mark [off, off + len) as taken. -EINVAL: outside the heap or not on a granule. -EEXIST: already taken. */
int reddn_heap_reserve(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Allocate `len` bytes, > 0. -ENOSPC: no run of free granules is long enough. */
int reddn_heap_alloc(struct reddn_heap *h, uint64_t len, uint64_t *off);

/** Free what reserve or alloc took, with the same length. */
void reddn_heap_free(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Bytes in use; waiting ones are not counted. */
uint64_t reddn_heap_used(const struct reddn_heap *h);

#endif
