/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/number.h"

#include <errno.h>

#include "tests/lib/cmocka.h"

static void test_numbers(void **state)
{
	uint64_t v = 7;

	assert_int_equal(number_parse("12", 0, 12, &v), 0);
	assert_int_equal(v, 12);
	assert_int_equal(number_parse("0x1f", 1, UINT64_MAX, &v), 0);
	assert_int_equal(v, 31);
	assert_int_equal(number_parse("18446744073709551615", 0, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	v = 7;
	assert_int_equal(number_parse("", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse("-1", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse("+1", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse(" 1", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse("1 ", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse("09", 0, 8, &v), -ERANGE);
	assert_int_equal(number_parse("0x", 0, 9, &v), -EINVAL);
	assert_int_equal(number_parse("1K", 0, 9999, &v), -EINVAL);
	assert_int_equal(number_parse("10", 0, 9, &v), -ERANGE);
	assert_int_equal(number_parse("0", 1, 9, &v), -ERANGE);
	assert_int_equal(number_parse("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	assert_int_equal(v, 7);
}

static void test_decimals(void **state)
{
	uint64_t v = 7;

	assert_int_equal(number_parse_decimal("0", 0, 9, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(number_parse_decimal("10", 0, 10, &v), 0);
	assert_int_equal(v, 10);
	assert_int_equal(number_parse_decimal("010", 0, 10, &v), 0);
	assert_int_equal(v, 10);
	assert_int_equal(number_parse_decimal("0x1", 0, 10, &v), -EINVAL);
	assert_int_equal(number_parse_decimal("", 0, 10, &v), -EINVAL);
	assert_int_equal(number_parse_decimal("11", 0, 10, &v), -ERANGE);
	assert_int_equal(v, 10);
}

static void test_sizes(void **state)
{
	uint64_t v = 0;

	assert_int_equal(number_parse_size("010M", INT64_MAX, &v), 0);
	assert_int_equal(v, 10u << 20);
	assert_int_equal(number_parse_size("0x1K", INT64_MAX, &v), 0);
	assert_int_equal(v, 1024);
	assert_int_equal(number_parse_size("4096", INT64_MAX, &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(number_parse_size("3K", INT64_MAX, &v), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(number_parse_size("256M", INT64_MAX, &v), 0);
	assert_int_equal(v, 256u << 20);
	assert_int_equal(number_parse_size("2G", INT64_MAX, &v), 0);
	assert_int_equal(v, 2ull << 30);
	assert_int_equal(number_parse_size("3KiB", INT64_MAX, &v), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(number_parse_size("256MiB", INT64_MAX, &v), 0);
	assert_int_equal(v, 256u << 20);
	assert_int_equal(number_parse_size("2GiB", INT64_MAX, &v), 0);
	assert_int_equal(v, 2ull << 30);
	assert_int_equal(number_parse_size("", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("-1", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1T", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1KB", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1Ki", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1KiBs", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1iB", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("1kib", INT64_MAX, &v), -EINVAL);
	assert_int_equal(number_parse_size("9223372036854775808", INT64_MAX, &v), -ERANGE);
	assert_int_equal(number_parse_size("99999999999G", INT64_MAX, &v), -ERANGE);
	assert_int_equal(number_parse_size("99999999999999999999999", INT64_MAX, &v), -ERANGE);
}

static void test_durations(void **state)
{
	uint64_t v = 0;

	assert_int_equal(number_parse_duration("50us", &v), 0);
	assert_int_equal(v, 50);
	assert_int_equal(number_parse_duration("250ms", &v), 0);
	assert_int_equal(v, 250000);
	assert_int_equal(number_parse_duration("60s", &v), 0);
	assert_int_equal(v, 60000000);
	assert_int_equal(number_parse_duration("5m", &v), 0);
	assert_int_equal(v, 300000000);
	assert_int_equal(number_parse_duration("720h", &v), 0);
	assert_int_equal(number_parse_duration("721h", &v), -ERANGE);
	assert_int_equal(number_parse_duration("99999999999999999999s", &v), -ERANGE);
	assert_int_equal(number_parse_duration("60", &v), -EINVAL);
	assert_int_equal(number_parse_duration("s", &v), -EINVAL);
	assert_int_equal(number_parse_duration("1s ", &v), -EINVAL);
	assert_int_equal(number_parse_duration("-1s", &v), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_decimals),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
