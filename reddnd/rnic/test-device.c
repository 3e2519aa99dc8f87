/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/device.h"

#include <time.h>

#include "tests/lib/cmocka.h"

static void test_ticks(void **state)
{
	assert_int_equal(rnic_stamps_of_clock(156250, 1000, 1001), 6); /* of 6.4 ns */
	assert_int_equal(rnic_stamps_of_clock(156250, 1000, 1010), 64);
	assert_int_equal(
		rnic_stamps_of_clock(1000000, 0, UINT64_C(3600) * 1000000000), UINT64_C(3600) * 1000000000);
}

static void test_real_time(void **state)
{
	const uint64_t s = UINT64_C(1) << 32;

	assert_int_equal(rnic_stamps_of_clock(0, 7 * s + 100, 7 * s + 5400), 5300);
	assert_int_equal(rnic_stamps_of_clock(0, 7 * s + 999999900, 8 * s + 20), 120);
}

static void test_which(void **state)
{
	uint64_t now = (uint64_t)time(NULL);

	assert_true(rnic_stamp_is_real_time(now << 32 | 999999999));
	assert_true(rnic_stamp_is_real_time((now + 37) << 32));  /* TAI */
	assert_false(rnic_stamp_is_real_time(now * 1000000000)); /* ticks of 1 GHz since 1970 */
	assert_false(rnic_stamp_is_real_time(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ticks), cmocka_unit_test(test_real_time), cmocka_unit_test(test_which)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
