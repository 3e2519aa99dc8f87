/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/log-pace.h"

#include "tests/lib/cmocka.h"

static void test_flood(void **state)
{
	struct log_pace p = {0};
	uint64_t left_out, logged = 0, counted = 0, now = 5000000;

	/* ten messages each millisecond, for 100 seconds */
	for (unsigned i = 0; i < 1000000; i++, now += 100) {
		logged += log_pace_allows(&p, __FILE__, 1, now, &left_out);
		counted += left_out;
	}
	assert_in_range(logged, LOG_PACE_BURST + 100 * LOG_PACE_PER_SECOND - 1,
		LOG_PACE_BURST + 100 * LOG_PACE_PER_SECOND + 1);
	/* another line is not held up; a pause of the first one fills its bucket */
	assert_true(log_pace_allows(&p, __FILE__, 2, now, &left_out));
	assert_int_equal(left_out, 0);
	now += 1000000ull * LOG_PACE_BURST / LOG_PACE_PER_SECOND;
	assert_true(log_pace_allows(&p, __FILE__, 1, now, &left_out));
	assert_int_equal(logged + counted + left_out, 1000000);
	for (unsigned i = 1; i < LOG_PACE_BURST; i++)
		assert_true(log_pace_allows(&p, __FILE__, 1, now, &left_out));
	assert_false(log_pace_allows(&p, __FILE__, 1, now, &left_out));
}

static void test_seldom(void **state)
{
	struct log_pace p = {0};
	uint64_t left_out;

	for (unsigned i = 0; i < 100000; i++)
		assert_true(
			log_pace_allows(&p, __FILE__, 1, i * (1000000ull / LOG_PACE_PER_SECOND), &left_out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
