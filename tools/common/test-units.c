/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/units.h"

#include "tests/lib/cmocka.h"

static void test_bytes(void **state)
{
	char text[UNITS_TEXT];

	assert_string_equal(units_bytes(text, 0), "0 B");
	assert_string_equal(units_bytes(text, 1023), "1023 B");
	assert_string_equal(units_bytes(text, 65536), "64.0 KiB");
	assert_string_equal(units_bytes(text, UINT64_MAX), "16.0 EiB");
}

static void test_times(void **state)
{
	char text[UNITS_TEXT];

	assert_string_equal(units_time(text, 0), "-");
	assert_string_equal(units_time(text, 999), "999 ns");
	assert_string_equal(units_time(text, 1000), "1.00 us");
	assert_string_equal(units_time(text, 8304), "8.30 us");
	assert_string_equal(units_time(text, 30720), "30.7 us");
	assert_string_equal(units_time(text, 999600), "1.00 ms");
	assert_string_equal(units_time(text, 119800900), "120 ms");
	assert_string_equal(units_time(text, UINT64_C(5000000000000)), "5000 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bytes), cmocka_unit_test(test_times)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
