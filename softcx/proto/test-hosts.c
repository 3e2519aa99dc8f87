/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/proto/hosts.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct hosts hosts;
static char why[160];

static int parse(const char *list, unsigned ndevs)
{
	return hosts_parse(&hosts, list, ndevs, why, sizeof(why));
}

static void lists(void **state)
{
	assert_int_equal(parse(NULL, 3), 0);
	assert_int_equal(hosts.n, 1);
	assert_int_equal(hosts.ndevs, 3);
	assert_int_equal(parse("a,node-2:3,c", 2), 0);
	assert_int_equal(hosts.n, 3);
	assert_int_equal(hosts.ndevs, 7);
	assert_string_equal(hosts.host[1].name, "node-2");
	assert_int_equal(hosts.host[1].ndevs, 3);
	assert_int_equal(hosts.host[2].first, 5);
}

static void refused(void **state)
{
	static const char *const bad[] = {"", "a,", ",a", "A", "2a", "a/b", "..", "sys", "lock", "a:", "a:x",
		"a:-1", "a:1x", "a:0", "a:17", "a:9,b:9", "a,b,a", "abcdefghijklmnop", "a,b,c,d,e,f,g,h,i"};

	for (unsigned i = 0; i < COUNT(bad); i++) {
		why[0] = '\0';
		if (parse(bad[i], 1) != -EINVAL || !why[0])
			fail_msg("%s", bad[i]);
	}
	assert_int_equal(parse(NULL, 0), -EINVAL);
	assert_int_equal(parse(NULL, HOSTS_MAX_DEVS + 1), -EINVAL);
}

static void directories(void **state)
{
	char longest[SOFTCX_MAX_DIR + 2];

	assert_int_equal(parse("a,bc", 1), 0);
	assert_int_equal(hosts_set_dir(&hosts, "/nic"), 0);
	assert_string_equal(hosts.host[0].dir, "/nic"); /* the first is at home there */
	assert_string_equal(hosts.host[1].dir, "/nic/bc");
	memset(longest, 'x', sizeof(longest));
	longest[SOFTCX_MAX_DIR - 3] = '\0';
	assert_int_equal(hosts_set_dir(&hosts, longest), 0);
	longest[SOFTCX_MAX_DIR - 3] = 'x';
	longest[SOFTCX_MAX_DIR - 2] = '\0';
	assert_int_equal(hosts_set_dir(&hosts, longest), -ENAMETOOLONG);
}

/* What the devices of @list are in the order in which they are dealt out */
static void expect_deal(const char *list, const char *order)
{
	unsigned devs[HOSTS_MAX_DEVS];
	char text[4 * HOSTS_MAX_DEVS] = "";

	assert_int_equal(parse(list, 1), 0);
	hosts_deal(&hosts, devs);
	for (unsigned i = 0; i < hosts.ndevs; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%u ", devs[i]);
	assert_string_equal(text, order);
}

static void first_devices_are_dealt_out_first(void **state)
{
	expect_deal("a:2,b:2", "0 2 1 3 ");
	expect_deal("a,b:3,c:2", "0 1 4 2 5 3 ");
	expect_deal("a:3", "0 1 2 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(refused),
		cmocka_unit_test(directories),
		cmocka_unit_test(first_devices_are_dealt_out_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
