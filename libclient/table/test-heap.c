/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/table/impl.h"
#include "protocol/table-format.h"
#include "util/array.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void test_full_and_empty(void **state)
{
	struct reddn_heap h;
	uint64_t off, seen = 0;

	assert_int_equal(reddn_heap_init(&h, 100 * 64), 0);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(reddn_heap_alloc(&h, 33, &off), 0);
		assert_int_equal(off % 64, 0);
		seen += off / 64;
	}
	assert_int_equal(seen, 99 * 100 / 2);
	assert_int_equal(reddn_heap_used(&h), 6400);
	assert_int_equal(reddn_heap_alloc(&h, 1, &off), -ENOSPC);
	reddn_heap_free(&h, 640, 64);
	reddn_heap_free(&h, 704, 64);
	assert_int_equal(reddn_heap_used(&h), 98 * 64);
	assert_int_equal(reddn_heap_alloc(&h, 129, &off), -ENOSPC);
	assert_int_equal(reddn_heap_alloc(&h, 65, &off), 0);
	assert_int_equal(off, 640);
	reddn_heap_deinit(&h);
}

static void test_reserve(void **state)
{
	struct reddn_heap h;
	uint64_t off;

	assert_int_equal(reddn_heap_init(&h, 64 * 64), 0);
	assert_int_equal(reddn_heap_reserve(&h, 128, 100), 0);
	assert_int_equal(reddn_heap_reserve(&h, 192, 1), -EEXIST);
	assert_int_equal(reddn_heap_reserve(&h, 64, 65), -EEXIST);
	assert_int_equal(reddn_heap_reserve(&h, 64, 64), 0);
	assert_int_equal(reddn_heap_reserve(&h, 8, 8), -EINVAL);
	assert_int_equal(reddn_heap_reserve(&h, 63 * 64, 65), -EINVAL);
	assert_int_equal(reddn_heap_reserve(&h, 64 * 64, 1), -EINVAL);
	assert_int_equal(reddn_heap_reserve(&h, 256, 0), -EINVAL);
	assert_int_equal(reddn_heap_alloc(&h, 60 * 64, &off), 0);
	assert_int_equal(off, 256);
	reddn_heap_deinit(&h);
}

/* No start has the tag in any byte; what starts before one may reach over it. */
static void test_tag(void **state)
{
	static const struct {
		uint64_t taken, off;
	} cases[] = {{0xa500, 0xa600}, {0xa540, 0xa600}, {0xa5c0, 0xa600}, {0xa4c0, 0xa4c0}, {0xa600, 0xa600},
		{0xa50000, 0xa60000}, {0xa5a500, 0xa60000}, {0xa4a500, 0xa4a600}, {0xa4ffc0, 0xa4ffc0},
		{0xa5ffc0, 0xa60000}, {0x1a5a540, 0x1a60000}};
	struct reddn_heap h;
	uint64_t off;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(reddn_heap_init(&h, 0x2000000), 0);
		assert_int_equal(reddn_heap_reserve(&h, 0, cases[i].taken), 0);
		assert_int_equal(reddn_heap_alloc(&h, 64 * 1024, &off), 0);
		assert_int_equal(off, cases[i].off);
		reddn_heap_deinit(&h);
	}
	assert_int_equal(reddn_heap_init(&h, 0xa600), 0);
	assert_int_equal(reddn_heap_reserve(&h, 0, 0xa500), 0);
	assert_int_equal(reddn_heap_alloc(&h, 64, &off), -ENOSPC);
	reddn_heap_deinit(&h);
}

/* What was freed last is reused last. */
static void test_late_reuse(void **state)
{
	struct reddn_heap h;
	uint64_t off;

	assert_int_equal(reddn_heap_init(&h, 1000 * 64), 0);
	for (int i = 0; i < 500; i++)
		assert_int_equal(reddn_heap_alloc(&h, 64, &off), 0);
	for (uint64_t i = 0; i < 10; i++)
		reddn_heap_free(&h, i * 64, 64);
	for (int i = 0; i < 500 - 4; i++) {
		assert_int_equal(reddn_heap_alloc(&h, 64, &off), 0);
		assert_true(off >= 500 * 64);
	}
	assert_int_equal(reddn_heap_alloc(&h, 64, &off), 0);
	assert_true(off < 5 * 64);
	reddn_heap_deinit(&h);
}

/* Offsets 0xa500 to 0xa5ff are no starts: they hold the tag. */
static bool may_start(uint64_t granule)
{
	return granule * 64 >> 8 != REDDN_TABLE_TAG;
}

/* Random work against an owner per granule: no two live extents overlap, and -ENOSPC comes only when no run
 * is free. */
static void test_random(void **state)
{
	enum { GRANULES = 777, LIVE = 64 };
	struct {
		uint64_t off, len;
	} live[LIVE] = {0};
	unsigned char owner[GRANULES] = {0};
	struct reddn_heap h;
	uint64_t refused = 0;

	srandom(7);
	assert_int_equal(reddn_heap_init(&h, GRANULES * 64), 0);
	for (int step = 0; step < 200000; step++) {
		unsigned i = (unsigned)random() % LIVE;
		uint64_t n;

		if (live[i].len) {
			n = (live[i].len + 63) / 64;
			memset(owner + live[i].off / 64, 0, n);
			reddn_heap_free(&h, live[i].off, live[i].len);
			live[i].len = 0;
			continue;
		}
		live[i].len = 1 + (uint64_t)random() % 2000;
		n = (live[i].len + 63) / 64;
		if (reddn_heap_alloc(&h, live[i].len, &live[i].off) == 0) {
			for (uint64_t k = 0; k < n; k++) {
				assert_true(live[i].off / 64 + k < GRANULES);
				assert_int_equal(owner[live[i].off / 64 + k]++, 0);
			}
			assert_true(may_start(live[i].off / 64));
			continue;
		}
		live[i].len = 0;
		refused++;
		for (uint64_t k = 0; k + n <= GRANULES; k++)
			assert_true(!may_start(k) || memchr(owner + k, 1, n));
	}
	assert_true(refused > 0);
	reddn_heap_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_and_empty),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_tag),
		cmocka_unit_test(test_late_reuse),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
