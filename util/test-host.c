/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/host.h"

#include "util/array.h"

#include <string.h>

#include "tests/lib/cmocka.h"

static void test_addresses(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} cases[] = {
		{"storage1", "storage1", 7},
		{"storage1:7471", "storage1", 7471},
		{"192.0.2.1:65535", "192.0.2.1", 65535},
		{"2001:db8::1", "2001:db8::1", 7},
		{"::1", "::1", 7},
		{"[2001:db8::1]", "2001:db8::1", 7},
		{"[2001:db8::1]:1", "2001:db8::1", 1},
		{"fe80::1%eth0", "fe80::1%eth0", 7},
		{"[fe80::1%eth0]:7471", "fe80::1%eth0", 7471},
	};

	for (unsigned i = 0; i < COUNT(cases); i++) {
		uint16_t port = 7;
		char host[40];

		assert_true(host_split(cases[i].text, strlen(cases[i].text), host, sizeof(host), &port));
		assert_string_equal(host, cases[i].host);
		assert_int_equal(port, cases[i].port);
	}
}

static void test_no_addresses(void **state)
{
	static const char *const wrong[] = {"a:", "a:0", "a:65536", "a:x", "a:1 ", "a:-1", "[::1",
		"[::1]:", "[::1]x", "[::1]7", "[::1]:0", "", ":1", "[]:1", "[", "longer"};

	for (unsigned i = 0; i < COUNT(wrong); i++) {
		uint16_t port = 7;
		char host[6];

		assert_false(host_split(wrong[i], strlen(wrong[i]), host, sizeof(host), &port));
		assert_int_equal(port, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_no_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
