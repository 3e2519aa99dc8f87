/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/histogram.h"

#include <string.h>

#include "tests/lib/cmocka.h"

static struct histogram h;

static void test_exact(void **state)
{
	memset(&h, 0, sizeof(h));
	assert_int_equal(histogram_at(&h, 0.5), 0);
	for (uint64_t v = 1; v <= 60; v++)
		histogram_add(&h, v);
	assert_int_equal(histogram_at(&h, 0.5), 30);
	assert_int_equal(histogram_at(&h, 0), 1);
	assert_int_equal(histogram_at(&h, 1), 60);
}

static void test_close(void **state)
{
	memset(&h, 0, sizeof(h));
	for (uint64_t v = 1; v <= 1000000; v++)
		histogram_add(&h, v);
	for (int p = 1; p <= 99; p++) {
		uint64_t want = (uint64_t)p * 10000, got = histogram_at(&h, p / 100.0);

		assert_true(got >= want && got <= want + want / 500);
	}
	assert_int_equal(histogram_at(&h, 1), 1000000);
}

static void test_extremes(void **state)
{
	memset(&h, 0, sizeof(h));
	histogram_add(&h, 0);
	histogram_add(&h, UINT64_MAX);
	assert_int_equal(histogram_at(&h, 0.5), 0);
	assert_true(histogram_at(&h, 1) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
