/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/arena.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>
#include <uthash.h>

enum { BINS = 64 };

/* A part of the file, in use or not. Neighbours that are not in use become one. */
struct extent {
	TAILQ_ENTRY(extent) link; /* all of them, by offset */
	LIST_ENTRY(extent) hole;  /* unused: those of about its size */
	UT_hash_handle hh;        /* in use: by offset */
	uint64_t offset, size;
	bool used;
	bool kept; /* unused, and some of it may have memory */
};

/* Holes are in bins by the logarithm of their size, so that a search does not depend on their number */
struct rnic_arena {
	int fd;
	uint8_t *mem;
	uint64_t size, used;
	uint64_t kept; /* bytes in holes that have memory, at most */
	TAILQ_HEAD(extents, extent) extents;
	LIST_HEAD(, extent) holes[BINS];
	struct extent *by_offset;
};

static unsigned bin(uint64_t size)
{
	return BINS - 1 - (unsigned)__builtin_clzll(size);
}

static void add_hole(struct rnic_arena *arena, struct extent *e)
{
	e->used = false;
	LIST_INSERT_HEAD(&arena->holes[bin(e->size)], e, hole);
}

/* A hole in the bin of @size may be too small; no hole in a higher bin is */
static struct extent *find_hole(struct rnic_arena *arena, uint64_t size)
{
	struct extent *e;

	LIST_FOREACH (e, &arena->holes[bin(size)], hole)
		if (e->size >= size)
			return e;
	for (unsigned i = bin(size) + 1; i < BINS; i++)
		if (!LIST_EMPTY(&arena->holes[i]))
			return LIST_FIRST(&arena->holes[i]);
	return NULL;
}

/* @next, a hole, becomes part of @e */
static void swallow(struct rnic_arena *arena, struct extent *e, struct extent *next)
{
	e->size += next->size;
	e->kept |= next->kept;
	LIST_REMOVE(next, hole);
	TAILQ_REMOVE(&arena->extents, next, link);
	free(next);
}

static uint64_t round_to_pages(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Without extents. -ENOMEM */
static int make(struct rnic_arena **out, uint64_t size)
{
	struct rnic_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return -ENOMEM;
	arena->fd = -1;
	arena->size = size;
	TAILQ_INIT(&arena->extents);
	*out = arena;
	return 0;
}

static struct extent *append(struct rnic_arena *arena, uint64_t offset, uint64_t size)
{
	struct extent *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->offset = offset;
	e->size = size;
	TAILQ_INSERT_TAIL(&arena->extents, e, link);
	return e;
}

static int append_hole(struct rnic_arena *arena, uint64_t offset, uint64_t size)
{
	struct extent *e = append(arena, offset, size);

	if (!e)
		return -ENOMEM;
	add_hole(arena, e);
	return 0;
}

static void use(struct rnic_arena *arena, struct extent *e)
{
	e->used = true;
	HASH_ADD(hh, arena->by_offset, offset, sizeof(e->offset), e);
	arena->used += e->size;
}

/* What is there reads as zeroes then; a memfd cannot refuse */
static void punch(int fd, uint64_t offset, uint64_t size)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) < 0)
		abort();
}

DEFINE_CLEANUP(struct rnic_arena *, rnic_arena_free)

int rnic_arena_new(struct rnic_arena **out, uint64_t size)
{
	CLEANUP(rnic_arena_freep) struct rnic_arena *arena = NULL;
	int r = make(&arena, round_to_pages(size));
	void *mapping;

	if (r < 0)
		return r;
	arena->fd = file_new_sealed("reddnd-arena", arena->size, &mapping);
	if (arena->fd < 0)
		return arena->fd;
	arena->mem = mapping;
	r = append_hole(arena, 0, arena->size);
	if (r < 0)
		return r;
	*out = steal_ptr(&arena);
	return 0;
}

/* ---- of a daemon before this one ---- */

static int by_offset(const void *a, const void *b)
{
	const struct ledger_block *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int append_used(struct rnic_arena *arena, int fd, const struct ledger_block *used, size_t n)
{
	uint64_t at = 0;

	for (size_t i = 0; i <= n; i++) {
		uint64_t from = i < n ? used[i].offset : arena->size;
		uint64_t size = i < n ? round_to_pages(used[i].size) : 0;
		struct extent *e;

		if (from < at || from % round_to_pages(1) || from > arena->size || size > arena->size - from)
			return -EBADMSG;
		if (from > at) {
			punch(fd, at, from - at);
			if (append_hole(arena, at, from - at) < 0)
				return -ENOMEM;
		}
		e = i < n ? append(arena, from, size) : NULL;
		if (i < n && !e)
			return -ENOMEM;
		if (e)
			use(arena, e);
		at = from + size;
	}
	return 0;
}

int rnic_arena_open(struct rnic_arena **out, int fd, uint64_t size, const struct ledger_block *used, size_t n)
{
	CLEANUP(cleanup_free) struct ledger_block *sorted = calloc(n + 1, sizeof(*sorted));
	CLEANUP(rnic_arena_freep) struct rnic_arena *arena = NULL;
	void *mapping;
	int r;

	if (!sorted)
		return -ENOMEM;
	if (size != round_to_pages(size))
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		sorted[i] = used[i];
	qsort(sorted, n, sizeof(*sorted), by_offset);
	r = make(&arena, size);
	if (r == 0)
		r = file_map_sealed(fd, size, &mapping);
	if (r < 0)
		return r;
	arena->mem = mapping;
	r = append_used(arena, fd, sorted, n);
	if (r < 0)
		return r;
	arena->fd = fd;
	*out = steal_ptr(&arena);
	return 0;
}

/* ---- extents ---- */

void rnic_arena_free(struct rnic_arena *arena)
{
	struct extent *e, *next;

	HASH_CLEAR(hh, arena->by_offset);
	for (e = TAILQ_FIRST(&arena->extents); e; e = next) {
		next = TAILQ_NEXT(e, link);
		free(e);
	}
	if (arena->mem)
		munmap(arena->mem, arena->size);
	if (arena->fd >= 0)
		close(arena->fd);
	free(arena);
}

/* Devices pin it anyway, and one call takes less than a fault for each page. Linux before 5.14 has none. */
static bool populate(struct rnic_arena *arena, const struct extent *e)
{
	return madvise(arena->mem + e->offset, e->size, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

/* Its memory is gone or cleared */
static void unuse(struct rnic_arena *arena, struct extent *e)
{
	struct extent *beside = TAILQ_NEXT(e, link);

	HASH_DEL(arena->by_offset, e);
	arena->used -= e->size;
	if (beside && !beside->used)
		swallow(arena, e, beside);
	beside = TAILQ_PREV(e, extents, link);
	if (beside && !beside->used) {
		e->offset = beside->offset;
		swallow(arena, e, beside);
	}
	add_hole(arena, e);
}

int rnic_arena_alloc(struct rnic_arena *arena, uint64_t size, uint64_t *offset)
{
	struct extent *e, *rest;

	size = round_to_pages(size);
	assert(size > 0);
	e = find_hole(arena, size);
	if (!e)
		return -ENOSPC;
	rest = e->size > size ? calloc(1, sizeof(*rest)) : NULL;
	if (e->size > size && !rest)
		return -ENOMEM;
	LIST_REMOVE(e, hole);
	if (rest) {
		rest->offset = e->offset + size;
		rest->size = e->size - size;
		rest->kept = e->kept;
		e->size = size;
		TAILQ_INSERT_AFTER(&arena->extents, e, rest, link);
		add_hole(arena, rest);
	}
	use(arena, e);
	*offset = e->offset;
	if (populate(arena, e))
		return 0;
	punch(arena->fd, e->offset, e->size);
	unuse(arena, e);
	return -ENOMEM;
}

static void give_back(struct rnic_arena *arena)
{
	struct extent *e;

	TAILQ_FOREACH (e, &arena->extents, link) {
		if (!e->used && e->kept)
			punch(arena->fd, e->offset, e->size);
		e->kept = false;
	}
	arena->kept = 0;
}

void rnic_arena_release(struct rnic_arena *arena, uint64_t offset)
{
	struct extent *e;

	HASH_FIND(hh, arena->by_offset, &offset, sizeof(offset), e);
	assert(e);
	memset(arena->mem + e->offset, 0, e->size);
	e->kept = true;
	arena->kept += e->size;
	unuse(arena, e);
	if (arena->kept > ARENA_KEPT)
		give_back(arena);
}

uint8_t *rnic_arena_at(const struct rnic_arena *arena, uint64_t offset)
{
	assert(offset < arena->size);
	return arena->mem + offset;
}

int rnic_arena_fd(const struct rnic_arena *arena)
{
	return arena->fd;
}

uint64_t rnic_arena_size(const struct rnic_arena *arena)
{
	return arena->size;
}

uint64_t rnic_arena_used(const struct rnic_arena *arena)
{
	return arena->used;
}
