/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_names(void **state)
{
	(void)state;
	assert_true(text_is_name("a", 24));
	assert_true(text_is_name("get-users_2.v1", 24));
	assert_true(text_is_name("abcd", 4));
	assert_false(text_is_name("abcde", 4));
	assert_false(text_is_name("", 24));
	assert_false(text_is_name("-a", 24));
	assert_false(text_is_name("a b", 24));
	assert_false(text_is_name("a/b", 24));
}

static void test_sizes(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(text_parse_size("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(text_parse_size("3K", &v), 0);
	assert_int_equal(v, 3072);
	assert_int_equal(text_parse_size("256M", &v), 0);
	assert_int_equal(v, 256u << 20);
	assert_int_equal(text_parse_size("2G", &v), 0);
	assert_int_equal(v, 2ull << 30);
	assert_int_equal(text_parse_size("", &v), -EINVAL);
	assert_int_equal(text_parse_size("-1", &v), -EINVAL);
	assert_int_equal(text_parse_size("1T", &v), -EINVAL);
	assert_int_equal(text_parse_size("1KB", &v), -EINVAL);
	assert_int_equal(text_parse_size("9223372036854775808", &v), -ERANGE);
	assert_int_equal(text_parse_size("99999999999G", &v), -ERANGE);
	assert_int_equal(text_parse_size("99999999999999999999999", &v), -ERANGE);
}

static void test_durations(void **state)
{
	uint64_t v = 0;

	(void)state;
	assert_int_equal(text_parse_duration("50us", &v), 0);
	assert_int_equal(v, 50);
	assert_int_equal(text_parse_duration("250ms", &v), 0);
	assert_int_equal(v, 250000);
	assert_int_equal(text_parse_duration("60s", &v), 0);
	assert_int_equal(v, 60000000);
	assert_int_equal(text_parse_duration("5m", &v), 0);
	assert_int_equal(v, 300000000);
	assert_int_equal(text_parse_duration("720h", &v), 0);
	assert_int_equal(text_parse_duration("721h", &v), -ERANGE);
	assert_int_equal(text_parse_duration("99999999999999999999s", &v), -ERANGE);
	assert_int_equal(text_parse_duration("60", &v), -EINVAL);
	assert_int_equal(text_parse_duration("s", &v), -EINVAL);
	assert_int_equal(text_parse_duration("1s ", &v), -EINVAL);
	assert_int_equal(text_parse_duration("-1s", &v), -EINVAL);
}

static void test_nearest(void **state)
{
	static const char *const words[] = {"listen", "device", "regions", "offloads"};

	(void)state;
	assert_string_equal(text_nearest("lisen", words, 4), "listen");
	assert_string_equal(text_nearest("region", words, 4), "regions");
	assert_string_equal(text_nearest("ofloads", words, 4), "offloads");
	assert_string_equal(text_nearest("off", words, 4), "offloads");
	assert_null(text_nearest("xyz", words, 4));
	assert_null(text_nearest("q", words, 4));
	assert_null(text_nearest("", words, 0));
}

static void test_hint(void **state)
{
	static const char *const words[] = {"status", "clients"};
	char hint[TEXT_HINT];

	(void)state;
	assert_string_equal(text_hint(hint, "stats", words, 2, "; else"), "; did you mean \"status\"?");
	assert_string_equal(text_hint(hint, "zzzzzzz", words, 2, "; else"), "; else");
	assert_string_equal(text_hint(hint, "stats", words, 0, ""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
