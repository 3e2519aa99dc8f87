/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load.c"

#include "tests/lib/cmocka.h"

enum { STEPS = 110000 };

/* How often each rank comes if all random numbers come once */
static void count(double s, size_t n, unsigned *times)
{
	struct zipf z;

	assert_int_equal(zipf_init(&z, n, s), 0);
	for (uint64_t i = 0; i < STEPS; i++)
		times[zipf_rank(&z, i * (UINT64_MAX / STEPS))]++;
	assert_int_equal(zipf_rank(&z, 0), 0);
	assert_int_equal(zipf_rank(&z, UINT64_MAX), n - 1);
	zipf_deinit(&z);
}

static void test_law(void **state)
{
	unsigned times[3] = {0}, even[10] = {0}, one[1] = {0};

	/* 1 + 1/2 + 1/3 = 11/6 */
	count(1, 3, times);
	assert_in_range(times[0], 59990, 60010);
	assert_in_range(times[1], 29990, 30010);
	assert_in_range(times[2], 19990, 20010);
	count(0, 10, even);
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(even[i], 10990, 11010);
	count(0.99, 1, one);
	assert_int_equal(one[0], STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_law)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
