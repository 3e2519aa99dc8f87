/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - the extents of a store's heap. A chunk has extents of one size; when none of them is in use it can
 * get another. To bring that about, a chunk can be *drained*: none of its extents is taken meanwhile. Sizes
 * are what callers ask for, in lines of 64 bytes. Only the line of a chunk is in the file: which extents are
 * in use follows from the buckets, which claim theirs when the store is opened.
 *
 *   free ──take──▶ held ──publish──▶ used ──retire──▶ resting ──grace──▶ free
 *    ▲──────give────┘│└──retire──▶ replaced ──publish──▶┘
 *                    └──claim──▶ named ──publish──▶ used
 *
 * Two publishes may be reported in the wrong order, so an extent may be replaced before it is known to be
 * published; one that is named may be, too. A grace frees what rested when it began.
 *
 * Thread rules: one thread.
 */
#ifndef STORE_POOL_H
#define STORE_POOL_H

#include "protocol/table-format.h"
#include "reddnd/store/store.h"

/** Lines of the heap are numbered with 32 bits, and bytes of a chunk. */
static const uint64_t POOL_HEAP_MAX = 1ull << 38, POOL_CHUNK_MAX = 1ull << 31;

/** No chunk. */
static const uint64_t POOL_NONE = UINT64_MAX;

struct pool_class {
	uint32_t bytes;        /* of an extent; 0: no chunk has it */
	uint32_t slots;        /* extents in a chunk, those included whose offset has the tag */
	uint32_t open;         /* list of its chunks with a free extent */
	uint64_t chunks, idle; /* chunks, and those of them that have no extent in use */
	uint64_t free, held, used, resting;
	uint64_t retired; /* of those that rest: for the next grace */
};

struct pool {
	uint8_t *heap;
	uint64_t chunk, nchunks;
	unsigned shift; /* chunk is 1 << shift */
	struct pool_chunk *chunks;
	struct pool_class class[STORE_CLASSES];
	uint32_t unassigned; /* list of chunks of no class */
	uint64_t nunassigned;
	uint64_t drained;          /* the chunk that is, or POOL_NONE, */
	uint32_t drained_for;      /* and the bytes of the extents that it will have */
	uint32_t retired, resting; /* lists of extents: retired since the grace began, and before */
};

/** All chunks are free. -ENOMEM. */
int pool_init(struct pool *p, uint8_t *heap, uint64_t heap_size, uint64_t chunk);
void pool_deinit(struct pool *p);

/** When the store is opened, first for each extent that an instance may publish by now: it is held. -EBADMSG:
 * there is none of at least @bytes at @at. -EEXIST: it is held already. -ENOMEM. */
int pool_hold(struct pool *p, uint64_t at, uint32_t bytes);
/** Then for each extent that a bucket names: it is in use, or named if it is held. -EBADMSG, -ENOMEM: as
 * above. -EEXIST: a bucket names it already. */
int pool_claim(struct pool *p, uint64_t at, uint32_t bytes, uint64_t bucket);
/** All have been claimed. */
void pool_claimed(struct pool *p);

/** -ENOSPC: no extent is free. -EINVAL: a chunk has no room for one, or there are too many sizes. -ENOMEM. */
int pool_take(struct pool *p, uint32_t bytes, uint64_t *at);
/** False: it is not held. */
bool pool_give(struct pool *p, uint64_t at);
/** 1: @bucket names it from now on. 0: it was known that one does, or did. -EINVAL: it is not held. */
int pool_publish(struct pool *p, uint64_t at, uint64_t bucket);
/** Another bucket names it from now on. */
void pool_moved(struct pool *p, uint64_t at, uint64_t bucket);
/** 1: it was known that a bucket names it. 0: it was not; what is no extent, such as the null extent, does
 * not rest. -ENOENT: it is free. -EINVAL: it has been replaced already. */
int pool_retire(struct pool *p, uint64_t at);
/** True if it is held, and it is not known that a bucket names it, or did. */
bool pool_is_unnamed(const struct pool *p, uint64_t at);

/** True if extents rest that will be needed soon. */
bool pool_wants_grace(const struct pool *p);
void pool_grace_begins(struct pool *p);
/** True if extents have become free. */
bool pool_grace_over(struct pool *p);

/** True if chunk @n can be drained for extents of @bytes: it has others, some of which are in use or rest,
 * and none is held; and no chunk is drained now. */
bool pool_may_drain(const struct pool *p, uint64_t n, uint32_t bytes);
/** Its next extent in use, from number *@from on, and the bucket that names it, if nothing has replaced it
 * that was not reported. False: there is none. */
bool pool_next_used(const struct pool *p, uint64_t n, uint32_t *from, uint64_t *at, uint64_t *bucket);
/** No extent of chunk @n is taken any more. When all are free, it gets extents of @bytes. */
void pool_drain(struct pool *p, uint64_t n, uint32_t bytes);
/** Some are not going to be free: it goes on as before, and is not drained again. */
void pool_undrain(struct pool *p);

/** Bytes of the extents that pool_take() takes for @bytes. */
static inline uint32_t pool_class_bytes(uint32_t bytes)
{
	return (bytes + REDDN_STORE_CHUNK_LINE - 1) / REDDN_STORE_CHUNK_LINE * REDDN_STORE_CHUNK_LINE;
}

/** Bytes of the extent at @at; 0: there is none. */
uint32_t pool_bytes(const struct pool *p, uint64_t at);
/** True if @n more of @bytes may be held: all that are held are a part of the heap. */
bool pool_may_hold(const struct pool *p, uint32_t bytes, uint64_t n);
/** True if any is held. */
bool pool_is_held(const struct pool *p);
/** True if one of @bytes is in use. */
bool pool_is_used(const struct pool *p, uint32_t bytes);
/**
 * True if one more extent of @bytes can stay in use for ever, and @owed others. Then enough of them are left,
 * free or resting, for each that is held to be replaced once, and so of each other class; and a sixteenth of
 * all is held or left, for who comes later.
 */
bool pool_has_room(const struct pool *p, uint32_t bytes, uint64_t owed);

#endif
