/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/store/pool.h"

#include "reddnd/store/words.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { LINE = REDDN_STORE_CHUNK_LINE, NONE = UINT8_MAX, GRACE_EXTENTS = 64, HELD_PART = 4 };

/* Ends a list. Line 0 of the heap is that of a chunk, and chunks of a list are numbered from 1. */
enum { END = 0 };

enum extent_state { FREE, HELD, NAMED, REPLACED, USED, RESTING };

struct pool_chunk {
	uint8_t class;       /* NONE: no class */
	bool kept;           /* not all of its extents became free when it was drained */
	uint32_t usable;     /* extents whose offset has no tag */
	uint32_t free, held; /* of these */
	uint32_t fresh;      /* extents from this one on have not been used since the chunk has the class */
	uint32_t first;      /* list of the other free ones: lines of the heap */
	uint32_t next, prev; /* in the list of unassigned or open ones */
	uint8_t *state;      /* of each extent: enum extent_state */
	uint32_t *after;     /* and the next one in its list, or of one in use its bucket */
};

/* One extent */
struct slot {
	struct pool_chunk *chunk;
	struct pool_class *class;
	uint32_t n;
};

/* ---- places ---- */

static uint64_t chunk_base(const struct pool *p, const struct pool_chunk *c)
{
	return (uint64_t)(c - p->chunks) << p->shift;
}

static uint64_t slot_at(const struct pool *p, const struct pool_chunk *c, uint32_t n)
{
	return chunk_base(p, c) + LINE + (uint64_t)n * p->class[c->class].bytes;
}

static bool slot_find(const struct pool *p, uint64_t at, struct slot *s)
{
	uint64_t index = at >> p->shift, rest = at & (p->chunk - 1);
	struct pool_chunk *c = &p->chunks[index];

	if (index >= p->nchunks || rest < LINE || c->class == NONE)
		return false;
	*s = (struct slot){c, (struct pool_class *)&p->class[c->class],
		(uint32_t)((rest - LINE) / p->class[c->class].bytes)};
	return s->n < s->class->slots && slot_at(p, c, s->n) == at && at == reddn_untagged(at);
}

/* Of the extents of @bytes at @base: those without the tag in their offset. A range of 256 bytes in 64 KB and
 * larger ones have it. */
static uint32_t count_usable(uint64_t base, uint32_t bytes, uint32_t slots)
{
	uint64_t at = base + LINE, end = at + (uint64_t)bytes * slots;
	uint32_t usable = slots;

	while (at < end) {
		uint64_t tagged = (at & ~0xffffull) | (uint64_t)REDDN_TABLE_TAG << 8,
			 past = reddn_untagged(at);

		if (past == at) {
			/* To the next place that may have it */
			past = (at & 0xffff) < (tagged & 0xffff) ? tagged : (at | 0xffff) + 1;
			at += (past - at + bytes - 1) / bytes * bytes;
			continue;
		}
		for (; at < past && at < end; at += bytes)
			usable--;
	}
	return usable;
}

/* ---- lists ---- */

static void list_push(struct pool *p, uint32_t *head, struct pool_chunk *c)
{
	c->prev = END;
	c->next = *head;
	*head = (uint32_t)(c - p->chunks) + 1;
	if (c->next != END)
		p->chunks[c->next - 1].prev = *head;
}

static void list_remove(struct pool *p, uint32_t *head, struct pool_chunk *c)
{
	if (c->prev != END)
		p->chunks[c->prev - 1].next = c->next;
	else
		*head = c->next;
	if (c->next != END)
		p->chunks[c->next - 1].prev = c->prev;
}

/* ---- chunks ---- */

int pool_init(struct pool *p, uint8_t *heap, uint64_t heap_size, uint64_t chunk)
{
	*p = (struct pool){.heap = heap,
		.chunk = chunk,
		.shift = (unsigned)__builtin_ctzll(chunk),
		.nchunks = heap_size / chunk,
		.unassigned = END,
		.drained = POOL_NONE,
		.retired = END,
		.resting = END};
	p->chunks = calloc(p->nchunks, sizeof(*p->chunks));
	if (!p->chunks)
		return -ENOMEM;
	for (uint64_t i = 0; i < p->nchunks; i++)
		p->chunks[i].class = NONE;
	return 0;
}

static void chunk_release(struct pool_chunk *c)
{
	free(c->state);
	free(c->after);
	*c = (struct pool_chunk){.class = NONE};
}

void pool_deinit(struct pool *p)
{
	for (uint64_t i = 0; p->chunks && i < p->nchunks; i++)
		chunk_release(&p->chunks[i]);
	free(p->chunks);
	*p = (struct pool){0};
}

/* The class of extents of @bytes, a multiple of a line; NULL: there are too many */
static struct pool_class *class_of(struct pool *p, uint32_t bytes)
{
	struct pool_class *vacant = NULL;

	for (unsigned i = 0; i < STORE_CLASSES; i++) {
		if (p->class[i].bytes == bytes)
			return &p->class[i];
		if (!p->class[i].chunks && !vacant)
			vacant = &p->class[i];
	}
	if (vacant)
		*vacant = (struct pool_class){.bytes = bytes, .slots = (uint32_t)((p->chunk - LINE) / bytes)};
	return vacant;
}

/* Gives the chunk, which has none, a class. -ENOMEM */
static int chunk_assign(struct pool *p, struct pool_chunk *c, struct pool_class *class)
{
	c->state = calloc(class->slots, sizeof(*c->state));
	c->after = calloc(class->slots, sizeof(*c->after));
	if (!c->state || !c->after) {
		chunk_release(c);
		return -ENOMEM;
	}
	c->class = (uint8_t)(class - p->class);
	c->usable = c->free = count_usable(chunk_base(p, c), class->bytes, class->slots);
	class->chunks++;
	class->idle++;
	class->free += c->usable;
	return 0;
}

/* A chunk without a class, with a place for an extent of any size behind its line: one that never had one, or
 * one of whose extents none is in use. NULL: there is none. */
static struct pool_chunk *chunk_spare(struct pool *p)
{
	struct pool_class *class = p->class;

	if (p->unassigned != END) {
		struct pool_chunk *c = &p->chunks[p->unassigned - 1];

		list_remove(p, &p->unassigned, c);
		p->nunassigned--;
		return c;
	}
	while (class < p->class + STORE_CLASSES && !class->idle)
		class ++;
	if (class == p->class + STORE_CLASSES)
		return NULL;
	for (uint32_t i = class->open; i != END; i = p->chunks[i - 1].next) {
		struct pool_chunk *c = &p->chunks[i - 1];

		if (c->free < c->usable)
			continue;
		list_remove(p, &class->open, c);
		class->chunks--;
		class->idle--;
		class->free -= c->usable;
		chunk_release(c);
		return c;
	}
	assert(!"an idle chunk is in the list");
	return NULL;
}

static void chunk_put_back(struct pool *p, struct pool_chunk *c)
{
	list_push(p, &p->unassigned, c);
	p->nunassigned++;
}

/* The chunk has none. The line is in the file before anything names an extent. */
static int class_add(struct pool *p, struct pool_class *class, struct pool_chunk *c)
{
	int r = chunk_assign(p, c, class);

	if (r < 0) {
		chunk_put_back(p, c);
		return r;
	}
	list_push(p, &class->open, c);
	word_set(&((struct reddn_store_chunk *)(p->heap + chunk_base(p, c)))->extent, class->bytes);
	return 0;
}

static int class_extend(struct pool *p, struct pool_class *class)
{
	struct pool_chunk *c = chunk_spare(p);

	return c ? class_add(p, class, c) : -ENOSPC;
}

/* All extents of the chunk that is drained are free */
static void chunk_drained(struct pool *p)
{
	struct pool_chunk *c = &p->chunks[p->drained];
	struct pool_class *class;

	p->class[c->class].chunks--;
	chunk_release(c);
	p->drained = POOL_NONE;
	class = class_of(p, p->drained_for);
	if (class)
		class_add(p, class, c);
	else
		chunk_put_back(p, c);
}

/* ---- extents ---- */

static bool is_drained(const struct pool *p, const struct pool_chunk *c)
{
	return (uint64_t)(c - p->chunks) == p->drained;
}

static void slot_free(struct pool *p, const struct slot *s)
{
	struct pool_chunk *c = s->chunk;

	c->state[s->n] = FREE;
	c->after[s->n] = c->first;
	c->first = (uint32_t)(slot_at(p, c, s->n) / LINE);
	if (is_drained(p, c)) {
		if (++c->free == c->usable)
			chunk_drained(p);
		return;
	}
	s->class->free++;
	if (c->free++ == 0)
		list_push(p, &s->class->open, c);
	if (c->free == c->usable)
		s->class->idle++;
}

/* A free extent of the chunk, which has one. */
static struct slot slot_pop(struct pool *p, struct pool_chunk *c)
{
	struct slot s = {c, &p->class[c->class], 0};

	if (c->first != END) {
		slot_find(p, (uint64_t)c->first * LINE, &s);
		c->first = c->after[s.n];
	} else {
		while (slot_at(p, c, c->fresh) != reddn_untagged(slot_at(p, c, c->fresh)))
			c->fresh++;
		s.n = c->fresh++;
	}
	if (c->free == c->usable)
		s.class->idle--;
	s.class->free--;
	if (--c->free == 0)
		list_remove(p, &s.class->open, c);
	return s;
}

static void slot_hold(const struct slot *s)
{
	s->chunk->held++;
	s->class->held++;
}

static void slot_unhold(const struct slot *s)
{
	s->chunk->held--;
	s->class->held--;
}

static void slot_rest(struct pool *p, const struct slot *s)
{
	s->chunk->state[s->n] = RESTING;
	s->chunk->after[s->n] = p->retired;
	p->retired = (uint32_t)(slot_at(p, s->chunk, s->n) / LINE);
	s->class->resting++;
	s->class->retired++;
}

int pool_take(struct pool *p, uint32_t bytes, uint64_t *at)
{
	struct pool_class *class =
		bytes && bytes <= p->chunk - LINE ? class_of(p, pool_class_bytes(bytes)) : NULL;
	struct slot s;
	int r;

	if (!class)
		return -EINVAL;
	r = class->open == END ? class_extend(p, class) : 0;
	if (r < 0)
		return r;
	s = slot_pop(p, &p->chunks[class->open - 1]);
	s.chunk->state[s.n] = HELD;
	slot_hold(&s);
	*at = slot_at(p, s.chunk, s.n);
	return 0;
}

bool pool_give(struct pool *p, uint64_t at)
{
	struct slot s;

	if (!slot_find(p, at, &s))
		return false;
	/* A bucket had it that no chain can have written: chains may still read it */
	if (s.chunk->state[s.n] == REPLACED || s.chunk->state[s.n] == NAMED) {
		pool_publish(p, at, s.chunk->after[s.n]);
		return false;
	}
	if (s.chunk->state[s.n] != HELD)
		return false;
	slot_unhold(&s);
	slot_free(p, &s);
	return true;
}

int pool_publish(struct pool *p, uint64_t at, uint64_t bucket)
{
	enum extent_state was;
	struct slot s;

	if (!slot_find(p, at, &s))
		return -EINVAL;
	was = s.chunk->state[s.n];
	if (was != HELD && was != NAMED && was != REPLACED)
		return -EINVAL;
	slot_unhold(&s);
	if (was == REPLACED) {
		slot_rest(p, &s);
		return 0;
	}
	s.chunk->state[s.n] = USED;
	s.chunk->after[s.n] = (uint32_t)bucket;
	s.class->used++;
	return was == HELD;
}

int pool_retire(struct pool *p, uint64_t at)
{
	enum extent_state was;
	struct slot s;

	if (!slot_find(p, at, &s))
		return 0;
	was = s.chunk->state[s.n];
	switch (was) {
	case HELD:
	case NAMED:
		s.chunk->state[s.n] = REPLACED;
		return was == NAMED;
	case USED:
		s.class->used--;
		slot_rest(p, &s);
		return 1;
	case FREE:
		return -ENOENT;
	default:
		return -EINVAL;
	}
}

bool pool_is_unnamed(const struct pool *p, uint64_t at)
{
	struct slot s;

	return slot_find(p, at, &s) && s.chunk->state[s.n] == HELD;
}

/* ---- when the store is opened ---- */

/* The extent of at least @bytes at @at, in a chunk that gets its class by its line. -EBADMSG, -ENOMEM */
static int slot_open(struct pool *p, uint64_t at, uint32_t bytes, struct slot *s)
{
	uint64_t index = at >> p->shift, extent;
	struct pool_class *class;

	if (index >= p->nchunks)
		return -EBADMSG;
	extent = word_get(&((struct reddn_store_chunk *)(p->heap + (index << p->shift)))->extent);
	if (!extent || extent % LINE || extent > p->chunk - LINE || bytes > extent)
		return -EBADMSG;
	if (p->chunks[index].class == NONE) {
		int r;

		class = class_of(p, (uint32_t)extent);
		r = class ? chunk_assign(p, &p->chunks[index], class) : -EBADMSG;
		if (r < 0)
			return r;
	}
	return slot_find(p, at, s) ? 0 : -EBADMSG;
}

static void slot_use(const struct slot *s, enum extent_state state)
{
	s->chunk->state[s->n] = (uint8_t)state;
	if (s->chunk->free == s->chunk->usable)
		s->class->idle--;
	s->chunk->free--;
	s->class->free--;
}

int pool_hold(struct pool *p, uint64_t at, uint32_t bytes)
{
	struct slot s;
	int r = slot_open(p, at, bytes, &s);

	if (r < 0)
		return r;
	if (s.chunk->state[s.n] != FREE)
		return -EEXIST;
	slot_use(&s, HELD);
	slot_hold(&s);
	return 0;
}

int pool_claim(struct pool *p, uint64_t at, uint32_t bytes, uint64_t bucket)
{
	struct slot s;
	int r = slot_open(p, at, bytes, &s);

	if (r < 0)
		return r;
	s.chunk->after[s.n] = (uint32_t)bucket;
	switch (s.chunk->state[s.n]) {
	case FREE:
		slot_use(&s, USED);
		s.class->used++;
		return 0;
	case HELD:
		s.chunk->state[s.n] = NAMED;
		return 0;
	default:
		return -EEXIST;
	}
}

/* From the last one to the first, so that low offsets are used first */
static void chunk_claimed(struct pool *p, struct pool_chunk *c)
{
	const struct pool_class *class = &p->class[c->class];

	c->fresh = class->slots;
	for (uint32_t n = class->slots; n-- > 0;) {
		uint64_t at = slot_at(p, c, n);

		if (c->state[n] != FREE || at != reddn_untagged(at))
			continue;
		c->after[n] = c->first;
		c->first = (uint32_t)(at / LINE);
	}
}

void pool_claimed(struct pool *p)
{
	for (uint64_t i = p->nchunks; i-- > 0;) {
		struct pool_chunk *c = &p->chunks[i];

		if (c->class != NONE) {
			chunk_claimed(p, c);
			if (c->free)
				list_push(p, &p->class[c->class].open, c);
		} else if (reddn_untagged(i << p->shift) < (i + 1) << p->shift) {
			chunk_put_back(p, c);
		}
	}
}

/* ---- graces ---- */

bool pool_wants_grace(const struct pool *p)
{
	for (unsigned i = 0; i < STORE_CLASSES; i++) {
		const struct pool_class *class = &p->class[i];

		if (class->retired && (class->retired >= GRACE_EXTENTS || class->free <= class->held))
			return true;
	}
	return false;
}

void pool_grace_begins(struct pool *p)
{
	assert(p->resting == END);
	p->resting = p->retired;
	p->retired = END;
	for (unsigned i = 0; i < STORE_CLASSES; i++)
		p->class[i].retired = 0;
}

bool pool_grace_over(struct pool *p)
{
	bool any = p->resting != END;
	struct slot s;

	while (p->resting != END && slot_find(p, (uint64_t)p->resting * LINE, &s)) {
		p->resting = s.chunk->after[s.n];
		s.class->resting--;
		slot_free(p, &s);
	}
	return any;
}

uint32_t pool_bytes(const struct pool *p, uint64_t at)
{
	struct slot s;

	return slot_find(p, at, &s) ? s.class->bytes : 0;
}

/* ---- chunks that are drained ---- */

bool pool_may_drain(const struct pool *p, uint64_t n, uint32_t bytes)
{
	const struct pool_chunk *c = &p->chunks[n];

	return p->drained == POOL_NONE && c->class != NONE && p->class[c->class].bytes != bytes && !c->held &&
	       !c->kept && c->free < c->usable;
}

bool pool_next_used(const struct pool *p, uint64_t n, uint32_t *from, uint64_t *at, uint64_t *bucket)
{
	const struct pool_chunk *c = &p->chunks[n];

	for (; *from < p->class[c->class].slots; ++*from) {
		if (c->state[*from] != USED)
			continue;
		*at = slot_at(p, c, *from);
		*bucket = c->after[*from];
		++*from;
		return true;
	}
	return false;
}

void pool_drain(struct pool *p, uint64_t n, uint32_t bytes)
{
	struct pool_chunk *c = &p->chunks[n];
	struct pool_class *class = &p->class[c->class];

	assert(pool_may_drain(p, n, bytes));
	if (c->free)
		list_remove(p, &class->open, c);
	class->free -= c->free;
	p->drained = n;
	p->drained_for = bytes;
}

void pool_undrain(struct pool *p)
{
	struct pool_chunk *c = &p->chunks[p->drained];
	struct pool_class *class = &p->class[c->class];

	p->drained = POOL_NONE;
	c->kept = true;
	class->free += c->free;
	if (c->free)
		list_push(p, &class->open, c);
}

void pool_moved(struct pool *p, uint64_t at, uint64_t bucket)
{
	struct slot s;

	if (slot_find(p, at, &s) && s.chunk->state[s.n] == USED)
		s.chunk->after[s.n] = (uint32_t)bucket;
}

/* ---- how much there is ---- */

bool pool_may_hold(const struct pool *p, uint32_t bytes, uint64_t n)
{
	uint64_t held = n * pool_class_bytes(bytes);

	for (const struct pool_class *o = p->class; o < p->class + STORE_CLASSES; o++)
		held += o->held * o->bytes;
	return held <= p->nchunks * p->chunk / HELD_PART;
}

bool pool_is_held(const struct pool *p)
{
	for (unsigned i = 0; i < STORE_CLASSES; i++)
		if (p->class[i].held)
			return true;
	return false;
}

bool pool_is_used(const struct pool *p, uint32_t bytes)
{
	for (unsigned i = 0; i < STORE_CLASSES; i++)
		if (p->class[i].bytes == bytes)
			return p->class[i].used;
	return false;
}

bool pool_has_room(const struct pool *p, uint32_t bytes, uint64_t owed)
{
	uint64_t chunks = p->nunassigned, lacking = 0, left, share, kept;
	const struct pool_class *class = NULL;

	for (const struct pool_class *o = p->class; o < p->class + STORE_CLASSES; o++) {
		uint64_t spare;

		if (o->bytes == bytes)
			class = o;
		if (o->bytes == bytes || !o->chunks)
			continue;
		left = o->free + o->resting;
		if (left < o->held) {
			lacking += (o->held - left + o->slots - 1) / o->slots;
			continue;
		}
		spare = (left - o->held) / o->slots;
		chunks += spare < o->idle ? spare : o->idle;
	}
	if (!class)
		return false;
	chunks = chunks > lacking ? chunks - lacking : 0;
	left = class->free + class->resting + chunks * class->slots;
	share = (left + class->held + class->used) / 16;
	kept = class->held > share / 2 ? class->held : share - class->held;
	return left > kept + owed;
}
