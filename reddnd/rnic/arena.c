/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/arena.h"

#include "reddnd/util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

struct extent {
	TAILQ_ENTRY(extent) link; /* by offset */
	uint64_t offset, size;
};

struct rnic_arena {
	int fd;
	uint8_t *mem;
	uint64_t size, used;
	TAILQ_HEAD(, extent) extents;
};

static uint64_t round_to_pages(uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

int rnic_arena_new(struct rnic_arena **out, uint64_t size)
{
	CLEANUP(cleanup_close) int fd = -1;
	CLEANUP(cleanup_free) struct rnic_arena *arena = calloc(1, sizeof *arena);

	if (!arena)
		return -ENOMEM;
	size = round_to_pages(size);
	fd = memfd_create("reddnd-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	arena->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (arena->mem == MAP_FAILED)
		return -errno;
	arena->fd = steal_fd(&fd);
	arena->size = size;
	TAILQ_INIT(&arena->extents);
	*out = steal_ptr(&arena);
	return 0;
}

void rnic_arena_free(struct rnic_arena *arena)
{
	struct extent *e, *next;

	for (e = TAILQ_FIRST(&arena->extents); e; e = next) {
		next = TAILQ_NEXT(e, link);
		free(e);
	}
	munmap(arena->mem, arena->size);
	close(arena->fd);
	free(arena);
}

int rnic_arena_alloc(struct rnic_arena *arena, uint64_t size, uint64_t *offset)
{
	struct extent *e, *next;
	uint64_t hole = 0;

	size = round_to_pages(size);
	assert(size > 0);
	TAILQ_FOREACH (next, &arena->extents, link) {
		if (next->offset - hole >= size)
			break;
		hole = next->offset + next->size;
	}
	if (!next && (arena->size < hole || arena->size - hole < size))
		return -ENOSPC;
	e = malloc(sizeof *e);
	if (!e)
		return -ENOMEM;
	e->offset = hole;
	e->size = size;
	if (next)
		TAILQ_INSERT_BEFORE(next, e, link);
	else
		TAILQ_INSERT_TAIL(&arena->extents, e, link);
	arena->used += size;
	*offset = hole;
	return 0;
}

void rnic_arena_release(struct rnic_arena *arena, uint64_t offset)
{
	struct extent *e;

	TAILQ_FOREACH (e, &arena->extents, link)
		if (e->offset == offset)
			break;
	assert(e);
	TAILQ_REMOVE(&arena->extents, e, link);
	arena->used -= e->size;
	/* Gives the memory back and makes the next extent here read as zeroes; a memfd cannot refuse it */
	if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)e->offset,
		    (off_t)e->size) < 0)
		abort();
	free(e);
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
