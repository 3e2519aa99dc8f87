/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/nic.h"

#include "util/array.h"

#include <errno.h>

#include "tests/lib/cmocka.h"

static const struct mc_where defaults = {.host = "a", .offload = "memcached", .port = 7471};

static void expect(const char *list, unsigned port, const char *host, unsigned to, const char *offload)
{
	struct mc_where w = defaults;
	const char *bad;

	assert_int_equal(mc_where_find(&w, list, "a", port, &bad), 0);
	assert_string_equal(w.host, host);
	assert_int_equal(w.port, to);
	assert_string_equal(w.offload, offload);
}

static void test_find(void **state)
{
	struct mc_where w = defaults;
	const char *bad;

	expect(NULL, 11211, "a", 7471, "memcached");
	expect("", 11211, "a", 7471, "memcached");
	expect("b=c", 11211, "a", 7471, "memcached");
	expect("a=c", 11211, "c", 7471, "memcached");
	expect("b=d,a=c:1,a=e", 11211, "c", 1, "memcached");
	expect("a:11212=c,a:11211=d/cache2", 11211, "d", 7471, "cache2");
	expect("a=[::1]:65535/x", 11211, "::1", 65535, "x");
	expect("a=-", 11211, "", 7471, "memcached");
	assert_int_equal(mc_where_find(&w, "b=-,/run/m.sock=c/x", "/run/m.sock", 0, &bad), 0);
	assert_string_equal(w.host, "c");
}

static void test_malformed(void **state)
{
	static const char *const lists[] = {"a", "=b", "a=", "a=:1", "a=b:0", "a=b:65536", "a=b:1x", "a=b:-1",
		"a=b/", "a=b/a-name-of-24-bytes-or-mo", "b=c,,a=b", "a=/x", "a=b,c"};

	for (unsigned i = 0; i < COUNT(lists); i++) {
		struct mc_where w = defaults;
		const char *bad = NULL;

		assert_int_equal(mc_where_find(&w, lists[i], "a", 11211, &bad), -EINVAL);
		assert_non_null(bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
