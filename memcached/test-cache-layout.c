/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts of cache files: places that do not overlap, sizes, headers of strangers. */
#include "memcached/cache-layout.h"

#include <errno.h>

#include "tests/lib/cmocka.h"

static struct reddn_cache_header make(uint64_t megabytes, unsigned power)
{
	struct reddn_cache_header h;

	assert_int_equal(cache_layout_make(&h, megabytes << 20, power), 0);
	assert_true(cache_layout_is_sound(&h, h.file_size));
	return h;
}

static void test_places(void **state)
{
	struct reddn_cache_header h = make(1000, 12);

	assert_int_equal(reddn_cache_table(h.tables_off, 0), h.tables_off);
	assert_int_equal(reddn_cache_table(h.tables_off, 0) + (8 << 12), reddn_cache_table(h.tables_off, 12));
	for (unsigned p = h.power_min; p < h.power_max; p++)
		assert_int_equal(reddn_cache_table(h.tables_off, p) + (8ull << p),
			reddn_cache_table(h.tables_off, p + 1));
	assert_true(reddn_cache_table(h.tables_off, h.power_max) + (8ull << h.power_max) <= h.pages_off);
	assert_true(h.tables_off >= REDDN_CACHE_NULL + sizeof(h));
}

static void test_sizes(void **state)
{
	struct reddn_cache_header h = make(64, 16);

	assert_int_equal(h.pages_size, 128 << 20);
	/* 699050 items of 96 bytes; 786432 are 1.5 for each of 2^19 buckets */
	assert_int_equal(h.power_max, 19);
	assert_int_equal(h.file_size, h.pages_off + h.pages_size + REDDN_CACHE_PADDING);
	assert_int_equal(make(64, 22).power_max, 22);
	assert_int_equal(make(1 << 17, 16).power_max, CACHE_POWER_MOST);
	assert_true(reddn_cache_table(REDDN_CACHE_TABLES, CACHE_POWER_MOST) < 1ull << 32);
}

static void test_refused(void **state)
{
	struct reddn_cache_header h;

	assert_int_equal(cache_layout_make(&h, 64 << 20, 11), -ERANGE);
	assert_int_equal(cache_layout_make(&h, 64 << 20, 28), -ERANGE);
	assert_int_equal(cache_layout_make(&h, 0, 16), -EINVAL);
	assert_int_equal(cache_layout_make(&h, 1ull << 40, 16), -EINVAL);
}

static void test_same(void **state)
{
	struct reddn_cache_header a = make(64, 16), b = a;

	b.live.generation = 5;
	assert_true(cache_layout_same(&a, &b));
	b = make(65, 16);
	assert_false(cache_layout_same(&a, &b));
	b = make(64, 17);
	assert_false(cache_layout_same(&a, &b));
}

#define UNSOUND(field, value)                                                                                \
	do {                                                                                                 \
		struct reddn_cache_header h = good;                                                          \
		h.field = value;                                                                             \
		assert_false(cache_layout_is_sound(&h, good.file_size));                                     \
	} while (0)

static void test_unsound(void **state)
{
	struct reddn_cache_header good = make(64, 16);

	assert_false(cache_layout_is_sound(&good, good.file_size - 1));
	UNSOUND(magic, 0);
	UNSOUND(version, 2);
	UNSOUND(header_size, 64);
	UNSOUND(base, 0);
	UNSOUND(tables_off, 0);
	UNSOUND(power_min, 5);
	UNSOUND(power_min, 20);
	UNSOUND(power_max, 15);
	UNSOUND(power_max, 31);
	UNSOUND(pages_off, 0);
	UNSOUND(pages_off, UINT64_MAX);
	UNSOUND(pages_size, UINT64_MAX - 5);
	UNSOUND(file_size, good.file_size - REDDN_CACHE_PADDING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_unsound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
