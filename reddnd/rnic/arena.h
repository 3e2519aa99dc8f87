/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena.h - one memfd that holds the memory of all queues: rings, CQEs, doorbell records, scratch.
 *
 * The file is sparse and its size is sealed, so that everything that maps it (a successor process, the NIC's
 * driver) can rely on it. Sessions get extents: whole pages, zeroed, contiguous in the file and in memory.
 * Freed extents are cleared, so an extent may be freed only when no device holds it. Their memory stays for
 * the next session, up to ARENA_KEPT bytes; then all of it is given back to the system (hole punching).
 *
 * Thread rules: one thread.
 */
#ifndef RNIC_ARENA_H
#define RNIC_ARENA_H

#include "reddnd/ledger/format.h"

#include <stddef.h>
#include <stdint.h>

struct rnic_arena;

enum { ARENA_KEPT = 16 << 20 };

int rnic_arena_new(struct rnic_arena **arena, uint64_t size); /* rounded up to pages */
/**
 * Goes on with the arena in file @fd, which it takes on success: @used are its extents, in any order. All
 * else in it is free, and reads as zeroes. -EBADMSG: it is no file of @size bytes that an arena can be in, or
 * extents overlap or are not in it.
 */
int rnic_arena_open(
	struct rnic_arena **arena, int fd, uint64_t size, const struct ledger_block *used, size_t n);
void rnic_arena_free(struct rnic_arena *arena); /* and the extents left in it */

/** -ENOSPC when no hole is large enough, -ENOMEM when the system has no memory for it. @size is rounded up to
 * pages. The time does not depend on the number of extents. */
int rnic_arena_alloc(struct rnic_arena *arena, uint64_t size, uint64_t *offset);
void rnic_arena_release(struct rnic_arena *arena, uint64_t offset);

uint8_t *rnic_arena_at(const struct rnic_arena *arena, uint64_t offset);
int rnic_arena_fd(const struct rnic_arena *arena);
uint64_t rnic_arena_size(const struct rnic_arena *arena);
uint64_t rnic_arena_used(const struct rnic_arena *arena); /* bytes in extents */

#endif
