/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap.h - who owns which part of a table's heap. Lives in the writer's private memory and is rebuilt from
 * the buckets when a table is opened, so a crash cannot damage it.
 *
 * Space is handed out in granules of 64 bytes, next-fit: the search goes round the heap, and freed space
 * waits in a queue before it is free again. Both make the time between free and reuse as long as the heap
 * allows, which is what spares a NIC that still reads the old record. Not thread-safe.
 */
#ifndef LIBCLIENT_TABLE_HEAP_H
#define LIBCLIENT_TABLE_HEAP_H

#include <stdint.h>

enum { REDDN_HEAP_GRANULE = 64, REDDN_HEAP_QUEUE = 1024 };

struct reddn_heap {
	uint64_t granules;
	uint64_t taken;  /* granules that are not free, those that wait included */
	uint64_t queued; /* granules that wait */
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

/** Mark [off, off + len) as taken. -EINVAL outside the heap or not on a granule, -EEXIST when taken already.
 */
int reddn_heap_reserve(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Find room for `len` bytes, > 0. -ENOSPC when there is no run of granules long enough. */
int reddn_heap_alloc(struct reddn_heap *h, uint64_t len, uint64_t *off);

/** Give back what reserve or alloc took, with the same length. */
void reddn_heap_free(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Bytes in use: taken and not waiting. */
uint64_t reddn_heap_used(const struct reddn_heap *h);

#endif
