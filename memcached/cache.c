/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/cache.h"

#include "util/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* All @count pages are free. -ENOMEM. */
static int pages_init(struct pages *p, uint32_t count)
{
	*p = (struct pages){.runs = calloc(count, sizeof(*p->runs)), .count = count};
	return p->runs ? 0 : -ENOMEM;
}

static void pages_deinit(struct pages *p)
{
	free(p->runs);
}

/* Takes @run consecutive pages, the first that are free, from a multiple of @align on. Their first, or -1. */
static int64_t pages_take(struct pages *p, uint32_t run, uint32_t align)
{
	uint32_t at = p->first, begin = round_up(at, align); /* of the free pages before @at */

	while (at < p->count) {
		if (p->runs[at]) {
			at += p->runs[at];
			begin = round_up(at, align);
			continue;
		}
		at++;
		if (at < begin || at - begin < run)
			continue;
		p->runs[begin] = run;
		if (begin == p->first)
			p->first += run;
		return begin;
	}
	return -1;
}

/* Gives back the run that begins with @page. -EINVAL: none does. */
static int pages_give(struct pages *p, uint32_t page)
{
	if (page >= p->count || !p->runs[page])
		return -EINVAL;
	p->runs[page] = 0;
	if (page < p->first)
		p->first = page;
	return 0;
}

static void publish(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

int cache_init(struct cache *a, void *base)
{
	*a = (struct cache){
		.base = base,
		.header = (struct reddn_cache_header *)((uint8_t *)base + REDDN_CACHE_NULL),
	};
	pthread_mutex_init(&a->lock, NULL);
	publish(&a->header->live.next, 1);
	return pages_init(&a->pages, (uint32_t)(a->header->pages_size / REDDN_CACHE_PAGE));
}

void cache_deinit(struct cache *a)
{
	pages_deinit(&a->pages);
	pthread_mutex_destroy(&a->lock);
}

static bool has(uint64_t places, unsigned place)
{
	return places >> place & 1;
}

static void clear_tables(struct cache *a, uint64_t places)
{
	const struct reddn_cache_header *h = a->header;

	for (unsigned place = 0; place <= h->power_max; place++) {
		unsigned power = place ? place : h->power_min;

		if (power >= h->power_min && has(places, place))
			memset(a->base + reddn_cache_table(h->tables_off, place), 0, 8ull << power);
	}
}

/* A generation is a time, so that it is new in another file, too. A NIC must not find items by a table of an
 * earlier memcached once their memory is used again. It finds them until the generation is odd, so what takes
 * long comes before. */
static void begin_generation(struct cache *a)
{
	struct reddn_cache_header *h = a->header;
	uint64_t before = h->live.generation | 1, now = clock_read_ns(CLOCK_REALTIME) & ~1ull;

	if (a->begun)
		return;
	publish(&h->live.generation, before);
	clear_tables(a, h->live.tables);
	publish(&h->live.tables, a->tables);
	publish(&h->live.pid, (uint64_t)getpid());
	publish(&h->live.power_min, h->power_min);
	publish(&h->live.generation, now > before ? now : before + 1);
	publish(&h->live.next, 0);
	a->begun = true;
}

void cache_begin(struct cache *a)
{
	pthread_mutex_lock(&a->lock);
	if (a->used)
		begin_generation(a);
	a->early = true;
	pthread_mutex_unlock(&a->lock);
}

/* A place for 2^power_min buckets, if possible one where the memcached before has none. False: both are used
 */
static bool find_place(const struct cache *a, unsigned *place)
{
	const struct reddn_cache_header *h = a->header;
	const uint64_t live = a->begun ? 0 : h->live.tables;

	*place = has(a->used | live, h->power_min) && !has(a->used | live, 0) ? 0 : h->power_min;
	if (has(a->used, *place))
		*place = 0;
	return !has(a->used, *place);
}

/* Returns where a table of 2^@power goes (0: the other place of power_min), CACHE_ELSEWHERE below zero, or
 * -ENOMEM */
static int choose(const struct cache *a, unsigned power, bool main_thread, unsigned *place)
{
	const struct reddn_cache_header *h = a->header;

	*place = power;
	if (main_thread)
		return power == h->power_min && find_place(a, place) ? 0 : CACHE_ELSEWHERE;
	if (power <= h->power_min)
		return CACHE_ELSEWHERE;
	return power <= h->power_max && !has(a->used, power) ? 0 : -ENOMEM;
}

int cache_table(struct cache *a, size_t count, bool main_thread, void **p)
{
	struct reddn_cache_header *h = a->header;
	unsigned place;
	int e;

	if (count < 2 || (count & (count - 1)))
		return CACHE_ELSEWHERE;
	pthread_mutex_lock(&a->lock);
	e = choose(a, (unsigned)__builtin_ctzll(count), main_thread, &place);
	if (e == 0) {
		if (!a->used && !a->begun)
			clear_tables(a, ~h->live.tables);
		/* where the memcached before has its items there, or something else begins to use their
		 * memory */
		if (!main_thread || a->early || has(h->live.tables, place))
			begin_generation(a);
		*p = a->base + reddn_cache_table(h->tables_off, place);
		memset(*p, 0, 8 * count);
		a->used |= 1ull << place;
		/* what had that size before the first table is none */
		a->tables = (main_thread ? 0 : a->tables) | 1ull << place;
		if (a->begun)
			publish(&h->live.tables, a->tables);
	}
	pthread_mutex_unlock(&a->lock);
	return e;
}

void *cache_pages(struct cache *a, size_t size, size_t align)
{
	const struct reddn_cache_header *h = a->header;
	uint64_t run = (size + REDDN_CACHE_PAGE - 1) / REDDN_CACHE_PAGE;
	int64_t page = -1;

	/* pages begin at a multiple of 2 MiB, and so do addresses of the cache file */
	assert(align % REDDN_CACHE_PAGE == 0 && align <= 2 * REDDN_CACHE_PAGE);
	cache_begin(a);
	pthread_mutex_lock(&a->lock);
	if (run <= a->pages.count)
		page = pages_take(&a->pages, (uint32_t)run, (uint32_t)(align / REDDN_CACHE_PAGE));
	pthread_mutex_unlock(&a->lock);
	return page < 0 ? NULL : a->base + h->pages_off + (uint64_t)page * REDDN_CACHE_PAGE;
}

static void free_table(struct cache *a, uint64_t off)
{
	struct reddn_cache_header *h = a->header;

	for (unsigned power = 0; power <= h->power_max; power++)
		if (has(a->used, power) && reddn_cache_table(h->tables_off, power) == off) {
			a->used &= ~(1ull << power);
			a->tables &= ~(1ull << power);
			if (a->begun)
				publish(&h->live.tables, a->tables);
		}
}

void cache_free(struct cache *a, void *p)
{
	const struct reddn_cache_header *h = a->header;
	uint64_t off = (uint64_t)((uint8_t *)p - a->base);

	pthread_mutex_lock(&a->lock);
	if (off < h->pages_off)
		free_table(a, off);
	else
		pages_give(&a->pages, (uint32_t)((off - h->pages_off) / REDDN_CACHE_PAGE));
	pthread_mutex_unlock(&a->lock);
}
