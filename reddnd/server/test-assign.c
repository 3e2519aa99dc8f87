/* SPDX-License-Identifier: BSD-2-Clause */
/* Which device serves which address, and what is wrong where one does not agree with the other. */
#include "reddnd/server/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* Of the addresses 10.0.0.1, 10.0.0.2 and so on */
static struct catalog with(const char *first, const char *second, unsigned addresses)
{
	struct catalog c = {.nlisten = addresses};

	for (unsigned i = 0; i < addresses; i++) {
		c.listen[i].port = 7471;
		snprintf(c.listen[i].address, sizeof(c.listen[i].address), "10.0.0.%u", i + 1);
	}
	if (first)
		strcpy(c.devices[c.ndevices++], first);
	if (second)
		strcpy(c.devices[c.ndevices++], second);
	return c;
}

static void refused(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], const char *words)
{
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_int_equal(assign_devices(c, belongs, &a, why), -EINVAL);
	assert_string_equal(why, words);
}

/* Nobody asks what addresses belong to: the device is opened, and compared then */
static void test_one(void **state)
{
	const struct catalog none = with(NULL, NULL, 2), one = with("a", NULL, 2);
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_false(assign_asks(&none));
	assert_int_equal(assign_devices(&none, NULL, &a, why), 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.name[0], "");
	assert_int_equal(a.of[1], 0);
	assert_false(assign_asks(&one));
	assert_int_equal(assign_devices(&one, NULL, &a, why), 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.name[0], "a");
}

static void test_list(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"b", "a", "b"};
	const struct catalog c = with("a", "b", 3);
	char why[ASSIGN_WHY];
	struct assignment a;

	assert_true(assign_asks(&c));
	assert_int_equal(assign_devices(&c, belongs, &a, why), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[0], "a");
	assert_int_equal(a.of[0], 1);
	assert_int_equal(a.of[1], 0);
	assert_int_equal(a.of[2], 1);
}

/* In the order of the addresses */
static void test_all(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"b", "a", "b"};
	struct catalog c = with(NULL, NULL, 3);
	char why[ASSIGN_WHY];
	struct assignment a;

	c.all_devices = true;
	assert_true(assign_asks(&c));
	assert_int_equal(assign_devices(&c, belongs, &a, why), 0);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[0], "b");
	assert_string_equal(a.name[1], "a");
	assert_int_equal(a.of[1], 1);
	assert_int_equal(a.of[2], 0);
}

static void test_mistakes(void **state)
{
	static const char elsewhere[][CATALOG_DEVICE_BYTES] = {"a", "c"},
			  any[][CATALOG_DEVICE_BYTES] = {"a", ""},
			  lonely[][CATALOG_DEVICE_BYTES] = {"a", "a"};
	const struct catalog c = with("a", "b", 2);
	struct catalog all = with(NULL, NULL, 2);

	refused(&c, elsewhere,
		"\"listen\": 10.0.0.2 port 7471 belongs to c, which is not in the list \"device\"; "
		"add it, or listen on an address of a device that is");
	refused(&c, any,
		"\"listen\": 10.0.0.2 port 7471 belongs to no device in particular; "
		"with several devices, give addresses of each");
	refused(&c, lonely,
		"no address of \"listen\" belongs to b, which is in the list \"device\"; add one, or take it "
		"out");
	all.all_devices = true;
	refused(&all, any,
		"\"listen\": 10.0.0.2 port 7471 belongs to no device in particular; "
		"with several devices, give addresses of each");
}

static void test_too_many(void **state)
{
	struct catalog c = with(NULL, NULL, CATALOG_DEVICES_MAX + 1);
	char belongs[CATALOG_LISTEN_MAX][CATALOG_DEVICE_BYTES];

	c.all_devices = true;
	for (unsigned i = 0; i < c.nlisten; i++)
		snprintf(belongs[i], sizeof(belongs[i]), "d%u", i);
	refused(&c, belongs, "the addresses of \"listen\" belong to more than 8 devices");
}

/* What was in force is served as far as it can be: addresses have gone, or belong to others now */
static void test_again(void **state)
{
	static const char belongs[][CATALOG_DEVICE_BYTES] = {"a", "", "c"},
			  none[][CATALOG_DEVICE_BYTES] = {"", "", ""};
	struct catalog c = with("a", "b", 3);
	struct assignment a;

	assign_again(&c, belongs, &a);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[1], "b");
	assert_int_equal(a.of[0], 0);
	assert_int_equal(a.of[1], ASSIGN_MISSING);
	assert_int_equal(a.of[2], ASSIGN_MISSING);

	c = with(NULL, NULL, 3);
	c.all_devices = true;
	assign_again(&c, belongs, &a);
	assert_int_equal(a.n, 2);
	assert_string_equal(a.name[1], "c");
	assert_int_equal(a.of[1], ASSIGN_MISSING);
	assert_int_equal(a.of[2], 1);
	assign_again(&c, none, &a);
	assert_int_equal(a.n, 0);

	c = with("a", NULL, 3);
	assign_again(&c, none, &a);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.of[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
