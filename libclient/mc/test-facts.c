/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/facts.h"

#include "protocol/cache-hash.h"

#include <string.h>

#include "tests/lib/cmocka.h"

enum { NOW = 5000000 };

static struct mc_lines lines(uint64_t tables)
{
	return (struct mc_lines){.live = {.generation = 8, .tables = tables, .power_min = 12},
		.served = {.generation = 8, .hash = CACHE_HASH_MURMUR3, .clock = 100, .asked = 100}};
}

static void test_places(void **state)
{
	const uint32_t hash = cache_hash(CACHE_HASH_MURMUR3, "key", 3);
	struct mc_lines l = lines(1 << 13 | 1 << 14);
	struct mc_facts f = {0};
	struct mc_place p;

	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	mc_facts_take(&f, &l, true, NOW);
	assert_true(mc_facts_place(&f, 0, "key", 3, &p));
	assert_int_equal(p.at, (8u << 13) + 8 * (hash % (1 << 13)));
	assert_true(mc_place_holds(&p, &l));
	assert_true(mc_facts_place(&f, 1, "key", 3, &p));
	assert_int_equal(p.at, (8u << 14) + 8 * (hash % (1 << 14)));
	assert_false(mc_facts_place(&f, 2, "key", 3, &p));
	l.live.tables = 1 << 13;
	assert_false(mc_place_holds(&p, &l));
	l = lines(1 << 14);
	l.live.generation = 10;
	assert_false(mc_place_holds(&p, &l));
	/* the other place of the smallest comes before the rest */
	l = lines(1 << 0 | 1 << 13);
	mc_facts_take(&f, &l, true, NOW);
	assert_true(mc_facts_place(&f, 0, "key", 3, &p));
	assert_int_equal(p.at, 8 * (hash % (1 << 12)));
	assert_true(mc_facts_place(&f, 1, "key", 3, &p));
	assert_int_equal(p.at, (8u << 13) + 8 * (hash % (1 << 13)));
}

static void test_unknown(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};
	struct mc_place p;

	mc_facts_take(&f, &l, true, NOW);
	mc_facts_take(&f, &l, false, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l.served.hash = CACHE_HASHES;
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l = lines(0);
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
	l = lines(1ull << 40);
	mc_facts_take(&f, &l, true, NOW);
	assert_false(mc_facts_place(&f, 0, "key", 3, &p));
}

/* CAS ids of one memcached are given in order; the next one begins again */
static void test_newest(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	mc_facts_saw(&f, 7);
	mc_facts_saw(&f, 5);
	mc_facts_saw(&f, 0);
	assert_int_equal(f.newest, 7);
	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(f.newest, 7);
	l.live.generation = l.served.generation = 10;
	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(f.newest, 0);
	mc_facts_saw(&f, 5);
	assert_int_equal(f.newest, 5);
}

static void test_clock(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(mc_facts_clock(&f, NOW), 100);
	assert_int_equal(mc_facts_clock(&f, NOW + 999), 100);
	assert_int_equal(mc_facts_clock(&f, NOW + 1000), 101);
	/* a later look shows that the first was late; an even later one is */
	l.served.clock = 101;
	mc_facts_take(&f, &l, true, NOW + 300);
	assert_int_equal(mc_facts_clock(&f, NOW + 300), 101);
	mc_facts_take(&f, &l, true, NOW + 1000);
	assert_int_equal(mc_facts_clock(&f, NOW + 1300), 102);
	/* another memcached has another clock */
	l.live.generation = l.served.generation = 10;
	l.served.clock = 60;
	mc_facts_take(&f, &l, true, NOW + 2000);
	assert_int_equal(mc_facts_clock(&f, NOW + 2000), 60);
}

static void test_age(void **state)
{
	struct mc_lines l = lines(1 << 12);
	struct mc_facts f = {0};

	mc_facts_take(&f, &l, true, NOW);
	assert_int_equal(mc_facts_age(&f, NOW), 0);
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 3000);
	/* it looks, but memcached does not answer */
	l.served.clock = 103;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 3000);
	l.served.asked = 103;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 3000), 0);
	l.served.died = 1700000000;
	mc_facts_take(&f, &l, true, NOW + 3000);
	assert_int_equal(mc_facts_age(&f, NOW + 9000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
