/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/control.c"

#include "tests/lib/cmocka.h"

/* Who asks again as soon as possible gets a tenth of the time, however long answers take */
static void test_tenth(void **state)
{
	struct share s = {0};
	uint64_t now = 1000, busy = 0;

	assert_int_equal(share_wait(&s, now), 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t took = i % 7 * 100;

		now += share_wait(&s, now);
		assert_int_equal(share_wait(&s, now), 0);
		share_took(&s, now, now + took);
		now += took;
		busy += took;
		assert_true(share_wait(&s, now) > 0);
	}
	now += share_wait(&s, now);
	assert_in_range(busy * SHARE_OF, (now - 1000) * 9 / 10, now - 1000);
}

static void test_rests(void **state)
{
	struct share s = {0};

	share_took(&s, 1000, 1100);
	assert_int_equal(share_wait(&s, 1100), 900);
	assert_int_equal(share_wait(&s, 1999), 1);
	assert_int_equal(share_wait(&s, 2000), 0);
	assert_int_equal(share_wait(&s, 500000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenth),
		cmocka_unit_test(test_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
