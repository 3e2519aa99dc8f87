/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/slot-sizes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void test_known(void **state)
{
	(void)state;
	assert_int_equal(reddn_slot_size("a", 1, "get"), 0);
	reddn_slot_size_set("a", 1, "get", 8192);
	assert_int_equal(reddn_slot_size("a", 1, "get"), 8192);
	assert_int_equal(reddn_slot_size("b", 1, "get"), 0);
	assert_int_equal(reddn_slot_size("a", 2, "get"), 0);
	assert_int_equal(reddn_slot_size("a", 1, "set"), 0);
	reddn_slot_size_set("a", 1, "get", 64);
	assert_int_equal(reddn_slot_size("a", 1, "get"), 64);
}

static void test_many(void **state)
{
	char name[24];
	unsigned known = 0;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "offload %u", i);
		reddn_slot_size_set("host", 7471, name, 64 * (i + 1));
	}
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t bytes;

		snprintf(name, sizeof(name), "offload %u", i);
		bytes = reddn_slot_size("host", 7471, name);
		assert_true(bytes == 0 || bytes == 64 * (i + 1));
		known += bytes != 0;
	}
	assert_int_equal(known, 64);
	assert_int_equal(reddn_slot_size("host", 7471, "offload 999"), 64 * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
