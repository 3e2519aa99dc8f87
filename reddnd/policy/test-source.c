/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/source.h"

#include "util/array.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static const struct {
	const char *address;
	unsigned bits;
	const char *source, *network;
} cases[] = {
	{"::ffff:192.0.2.77", 0, "192.0.2.77", "192.0.2.0"},
	{"::ffff:192.0.2.77", 32, "192.0.2.77", "192.0.2.0"},
	{"2001:db8:1:2:3:4:5:6", 0, "2001:db8:1:2::/64", "2001:db8:1::/64"},
	{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64", "2001:db8:1::/64"},
	{"2001:db8:1:2ff:3:4:5:6", 57, "2001:db8:1:280::/57", "2001:db8:1::/57"},
	{"2001:db8:1:2:3:4:5:6", 32, "2001:db8::/32", "2001:db8::/32"},
	{"2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6", "2001:db8:1::"},
	{"fe80::1:2", 64, "fe80::1:2", "fe80::"},
	{"fe80::1:2", 0, "fe80::1:2", "fe80::"},
	{"::", 0, "::/64", "::/64"},
};

static void test_sources(void **state)
{
	char text[SOURCE_TEXT];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct source s, n;
		uint8_t a[16];

		assert_int_equal(inet_pton(AF_INET6, cases[i].address, a), 1);
		s = source_of(a, cases[i].bits);
		n = source_network(&s);
		assert_string_equal(source_text(&s, cases[i].bits, text), cases[i].source);
		assert_string_equal(source_text(&n, cases[i].bits, text), cases[i].network);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
