/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cache file gives out, and what the next memcached finds. */
#include "memcached/cache-layout.h"
#include "memcached/cache.c"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { POWER = 12, MOST = 14, PAGES = 66, GUARD = 4096 };

static struct reddn_cache_header layout;

static int make(void **state)
{
	static struct cache a;
	uint8_t *base;

	if (cache_layout_make(&layout, 2 << 20, POWER) < 0)
		return -1;
	base = mmap(NULL, layout.file_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -1;
	memcpy(base + REDDN_CACHE_NULL, &layout, sizeof(layout));
	*state = &a;
	return cache_init(&a, base);
}

static int unmake(void **state)
{
	struct cache *a = *state;

	cache_deinit(a);
	return munmap(a->base, layout.file_size);
}

static uint64_t table(struct cache *a, unsigned power, bool main_thread)
{
	void *p = NULL;

	assert_int_equal(cache_table(a, 1ull << power, main_thread, &p), 0);
	assert_true(cache_has(a, p));
	for (uint64_t i = 0; i < 1ull << power; i++)
		assert_int_equal(((uint64_t *)p)[i], 0);
	return (uint64_t)((uint8_t *)p - a->base);
}

/* The table of a memcached that opens its port then */
static uint64_t begin(struct cache *a)
{
	uint64_t off = table(a, POWER, true);

	cache_begin(a);
	return off;
}

/* Another memcached has the file */
static void restart(struct cache *a)
{
	cache_deinit(a);
	assert_int_equal(cache_init(a, a->base), 0);
}

static int try(struct cache *a, uint64_t count, bool main_thread)
{
	void *p;

	return cache_table(a, count, main_thread, &p);
}

static void test_tables(void **state)
{
	struct cache *a = *state;
	const struct reddn_cache_live *live = &a->header->live;

	assert_int_equal(layout.power_max, MOST);
	assert_int_equal(try(a, 1000, true), CACHE_ELSEWHERE);
	assert_int_equal(try(a, 1 << (POWER + 1), true), CACHE_ELSEWHERE);
	assert_int_equal(try(a, 1 << POWER, false), CACHE_ELSEWHERE);
	assert_int_equal(live->generation, 0);
	assert_int_equal(table(a, POWER, true), layout.tables_off + (8 << POWER));
	/* memcached's connections were first */
	assert_int_equal(table(a, POWER, true), layout.tables_off);
	assert_int_equal(live->tables, 0);
	assert_int_equal(live->generation, 0);
	assert_int_equal(live->next, 1);
	cache_begin(a);
	assert_int_equal(live->tables, 1);
	assert_int_equal(live->next, 0);
	assert_int_equal(try(a, 1 << POWER, true), CACHE_ELSEWHERE);
	/* it grows, and grows again */
	assert_int_equal(table(a, POWER + 1, false), layout.tables_off + (16 << POWER));
	cache_free(a, a->base + layout.tables_off);
	assert_int_equal(live->tables, 2 << POWER);
	assert_int_equal(table(a, POWER + 2, false), layout.tables_off + (32 << POWER));
	cache_free(a, a->base + layout.tables_off + (16 << POWER));
	assert_int_equal(live->tables, 4 << POWER);
	assert_int_equal(try(a, 8 << POWER, false), -ENOMEM);
	assert_int_equal(live->pid, getpid());
}

/* A NIC must not reach items by the tables of the memcached before, once their memory is used again */
static void test_next_generation(void **state)
{
	struct cache *a = *state;
	struct reddn_cache_live *live = &a->header->live;
	uint64_t first = begin(a), larger = table(a, POWER + 1, false), before = live->generation;
	uint64_t *word = (uint64_t *)(a->base + larger) + 77, *item;

	assert_int_equal(before % 2, 0);
	*word = *(uint64_t *)(a->base + first) = REDDN_CACHE_BASE + 4711;
	item = cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE);
	*item = 5;
	restart(a);
	/* nothing happens before the first table: a memcached that does not start leaves all as it is */
	assert_ptr_equal(cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE), item);
	assert_int_equal(*item, 5);
	assert_int_equal(*word, REDDN_CACHE_BASE + 4711);
	assert_int_equal(live->generation, before);
	/* it has begun to use their memory */
	assert_int_equal(table(a, POWER, true), layout.tables_off);
	assert_int_equal(*word, 0);
	assert_int_equal(live->tables, 1);
	assert_true(live->generation > before && live->generation % 2 == 0);
	before = live->generation;
	cache_begin(a);
	assert_int_equal(live->generation, before);
	/* the clock has been set back */
	restart(a);
	live->generation = before = 1ull << 63;
	begin(a);
	assert_int_equal(live->generation, before + 2);
	/* one died while it began */
	restart(a);
	live->generation = before = (1ull << 63) + 7;
	begin(a);
	assert_int_equal(live->generation, before + 1);
}

/* The tables of both exist until then */
static void test_both(void **state)
{
	struct cache *a = *state;
	struct reddn_cache_live *live = &a->header->live;
	uint64_t first = begin(a), before = live->generation, *word = (uint64_t *)(a->base + first);

	*word = 5;
	for (unsigned i = 0; i < 2; i++) {
		restart(a);
		assert_int_equal(table(a, POWER, true), layout.tables_off);
		assert_int_equal(*word, 5);
		assert_int_equal(live->generation, before);
		assert_int_equal(live->tables, 1 << POWER);
		assert_int_equal(live->next, 1);
	}
	/* an item needs a page */
	cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE);
	assert_int_equal(live->next, 0);
	assert_int_equal(*word, 0);
	assert_int_equal(live->tables, 1);
	assert_true(live->generation > before && live->generation % 2 == 0);
	/* and back */
	restart(a);
	assert_int_equal(begin(a), first);
	assert_int_equal(live->tables, 1 << POWER);
	/* the array of connections takes the other place: so the table is where that of the memcached before
	 * was */
	restart(a);
	before = live->generation;
	assert_int_equal(table(a, POWER, true), layout.tables_off);
	assert_int_equal(live->generation, before);
	assert_int_equal(table(a, POWER, true), first);
	assert_true(live->generation > before && live->tables == 1 << POWER);
	/* one that has its port before it has a table */
	restart(a);
	cache_begin(a);
	before = live->generation;
	table(a, POWER, true);
	assert_true(live->generation > before && live->tables == 1);
}

static uint8_t *guarded;
static const uint64_t *generation;
static uint64_t generation_then;

static void on_write(int sig)
{
	generation_then = *generation;
	mprotect(guarded, GUARD, PROT_READ | PROT_WRITE);
}

/* The generation when the next memcached clears the table of 2^@power */
static uint64_t generation_when_cleared(struct cache *a, unsigned power)
{
	const struct sigaction act = {.sa_handler = on_write};
	struct sigaction before;

	restart(a);
	guarded = a->base + reddn_cache_table(layout.tables_off, power);
	generation = &a->header->live.generation;
	generation_then = 0;
	assert_int_equal(mprotect(guarded, GUARD, PROT_READ), 0);
	sigaction(SIGSEGV, &act, &before);
	begin(a);
	sigaction(SIGSEGV, &before, NULL);
	return generation_then;
}

/* A NIC finds what the memcached before had until its table is cleared, which comes last */
static void test_clears(void **state)
{
	struct cache *a = *state;
	uint64_t before;

	begin(a);
	before = a->header->live.generation;
	assert_int_equal(generation_when_cleared(a, POWER + 1), before);
	before = a->header->live.generation;
	assert_int_equal(generation_when_cleared(a, 0), before + 1);
	before = a->header->live.generation;
	assert_int_equal(generation_when_cleared(a, POWER), before + 1);
}

static void test_pages(void **state)
{
	struct cache *a = *state;
	uint8_t *first = cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE), *p = first;

	assert_ptr_equal(first, a->base + layout.pages_off);
	for (unsigned i = 1; i < PAGES; i++) {
		p = cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE);
		assert_ptr_equal(p, first + (size_t)i * REDDN_CACHE_PAGE);
	}
	assert_true(p + REDDN_CACHE_PAGE + REDDN_CACHE_PADDING <= a->base + layout.file_size);
	assert_null(cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE));
	cache_free(a, p);
	assert_ptr_equal(cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE), p);
	assert_null(cache_pages(a, REDDN_CACHE_PAGE, REDDN_CACHE_PAGE));
}

/* memcached -L: all of -m at once */
static void test_one_chunk(void **state)
{
	struct cache *a = *state;
	uint8_t *p = cache_pages(a, 2 * REDDN_CACHE_PAGE, 2 * REDDN_CACHE_PAGE);

	assert_ptr_equal(p, a->base + layout.pages_off);
	assert_int_equal(layout.pages_off % (2 * REDDN_CACHE_PAGE), 0);
	assert_null(cache_pages(a, (PAGES - 1) * REDDN_CACHE_PAGE, REDDN_CACHE_PAGE));
	assert_null(cache_pages(a, SIZE_MAX / 2, REDDN_CACHE_PAGE));
	cache_free(a, p);
	assert_ptr_equal(cache_pages(a, PAGES * REDDN_CACHE_PAGE, REDDN_CACHE_PAGE), p);
}

/* ---- pages ---- */

enum { ALL = 40 };

static int make_pages(void **state)
{
	static struct pages p;

	*state = &p;
	return pages_init(&p, ALL);
}

static int unmake_pages(void **state)
{
	pages_deinit(*state);
	return 0;
}

static void test_single(void **state)
{
	struct pages *p = *state;

	for (unsigned i = 0; i < ALL; i++)
		assert_int_equal(pages_take(p, 1, 1), i);
	assert_int_equal(pages_take(p, 1, 1), -1);
	assert_int_equal(pages_give(p, 7), 0);
	assert_int_equal(pages_give(p, 7), -EINVAL);
	assert_int_equal(pages_give(p, ALL), -EINVAL);
	assert_int_equal(pages_take(p, 1, 1), 7);
	assert_int_equal(pages_take(p, 1, 1), -1);
}

static void test_runs(void **state)
{
	struct pages *p = *state;

	assert_int_equal(pages_take(p, 3, 1), 0);
	assert_int_equal(pages_take(p, 4, 2), 4);
	assert_int_equal(pages_take(p, 1, 1), 3);
	assert_int_equal(pages_give(p, 5), -EINVAL);
	assert_int_equal(pages_take(p, 40, 1), -1);
	assert_int_equal(pages_take(p, 32, 1), 8);
	assert_int_equal(pages_give(p, 4), 0);
	assert_int_equal(pages_take(p, 4, 1), 4);
	assert_int_equal(pages_take(p, 1, 1), -1);
}

static void test_random(void **state)
{
	bool used[ALL] = {0};
	unsigned runs[ALL] = {0};
	struct pages *p = *state;

	srandom(1);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned run = 1 + (unsigned)random() % 4, align = 1 + (unsigned)random() % 2;
		unsigned page = (unsigned)random() % ALL;
		int64_t at;

		if (runs[page]) {
			assert_int_equal(pages_give(p, page), 0);
			for (unsigned k = 0; k < runs[page]; k++)
				used[page + k] = false;
			runs[page] = 0;
			continue;
		}
		at = pages_take(p, run, align);
		if (at >= 0) {
			assert_int_equal(at % align, 0);
			assert_in_range(at + run, 1, ALL);
			runs[at] = run;
		}
		for (unsigned k = 0, free = 0; k < ALL; k++) {
			if (at >= 0 && k >= at && k < at + run) {
				assert_false(used[k]);
				used[k] = true;
			}
			free = used[k] || (free == 0 && k % align) ? 0 : free + 1;
			if (at < 0)
				assert_true(free < run);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tables, make, unmake),
		cmocka_unit_test_setup_teardown(test_next_generation, make, unmake),
		cmocka_unit_test_setup_teardown(test_both, make, unmake),
		cmocka_unit_test_setup_teardown(test_clears, make, unmake),
		cmocka_unit_test_setup_teardown(test_pages, make, unmake),
		cmocka_unit_test_setup_teardown(test_one_chunk, make, unmake),
		cmocka_unit_test_setup_teardown(test_single, make_pages, unmake_pages),
		cmocka_unit_test_setup_teardown(test_runs, make_pages, unmake_pages),
		cmocka_unit_test_setup_teardown(test_random, make_pages, unmake_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
