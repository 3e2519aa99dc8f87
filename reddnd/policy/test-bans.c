/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/bans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_bans(void **state)
{
	struct bans *b = calloc(1, sizeof(*b));
	char peer[64];

	(void)state;
	bans_add(b, "192.0.2.1 port 7", 1000, 0, "words");
	assert_string_equal(bans_find(b, "192.0.2.1 port 8", 999)->why, "words");
	assert_null(bans_find(b, "192.0.2.10 port 7", 0));
	assert_null(bans_find(b, "192.0.2 port 7", 0));
	bans_add(b, "192.0.2.1 port 9", 500, 0, "shorter");
	assert_string_equal(bans_find(b, "192.0.2.1 port 8", 999)->why, "words");
	bans_add(b, "192.0.2.1 port 9", 2000, 0, "longer");
	assert_string_equal(bans_find(b, "192.0.2.1", 1999)->why, "longer");
	assert_null(bans_find(b, "192.0.2.1 port 8", 2000));
	assert_int_equal(b->n, 0);
	for (unsigned i = 0; i < BANS_MAX + 10; i++) {
		snprintf(peer, sizeof(peer), "2001:db8::%x port 7", i);
		bans_add(b, peer, 5000 + i, 0, "many");
	}
	assert_int_equal(b->n, BANS_MAX);
	/* those that would have ended first were replaced */
	assert_null(bans_find(b, "2001:db8::9 port 7", 1));
	assert_non_null(bans_find(b, "2001:db8::a port 7", 1));
	assert_non_null(bans_find(b, peer, 1));
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
