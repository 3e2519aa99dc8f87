/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/text.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

static void test_names(void **state)
{
	assert_true(text_is_name("a", 24));
	assert_true(text_is_name("get-users_2.v1", 24));
	assert_true(text_is_name("abcd", 4));
	assert_false(text_is_name("abcde", 4));
	assert_false(text_is_name("", 24));
	assert_false(text_is_name("-a", 24));
	assert_false(text_is_name("a b", 24));
	assert_false(text_is_name("a/b", 24));
}

static void test_nearest(void **state)
{
	static const char *const words[] = {"listen", "device", "regions", "offloads"};

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

	assert_string_equal(text_hint(hint, "stats", words, 2, "; else"), "; did you mean \"status\"?");
	assert_string_equal(text_hint(hint, "zzzzzzz", words, 2, "; else"), "; else");
	assert_string_equal(text_hint(hint, "stats", words, 0, ""), "");
}

static void test_utf8(void **state)
{
	static const struct {
		const char *text, *copy;
	} cases[] = {
		{"", ""},
		{"/dev/shm/x", "/dev/shm/x"},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"x\xff.y", "x\xef\xbf\xbd.y"},
		{"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* cut short */
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* longer than needed */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half of UTF-16 */
		{"\xf4\x90\x80\x80z", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *copy = text_as_utf8(cases[i].text);

		assert_string_equal(copy, cases[i].copy);
		free(copy);
	}
}

static void test_clean(void **state)
{
	char words[] = "a\x1b[31m\tb\x7f\xc2\x9b\xc2\xa0\xff\xe2\x82\xac\xe2\x82";

	assert_string_equal(text_clean(words), "a?[31m?b???\xc2\xa0?\xe2\x82\xac??");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_hint),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
