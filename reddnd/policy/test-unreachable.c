/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reddnd/policy/unreachable.h"

#include <string.h>

static struct unreachable u;

static const uint8_t *gid(unsigned n)
{
	static uint8_t g[16];

	memcpy(g, &n, sizeof(n));
	return g;
}

static int setup(void **state)
{
	(void)state;
	memset(&u, 0, sizeof(u));
	return 0;
}

static void forgets(void **state)
{
	(void)state;
	assert_false(unreachable_has(&u, gid(0), 0));
	unreachable_add(&u, gid(1), 100);
	assert_true(unreachable_has(&u, gid(1), 100 + UNREACHABLE_US - 1));
	assert_false(unreachable_has(&u, gid(1), 100 + UNREACHABLE_US));
	assert_false(unreachable_has(&u, gid(2), 100));
}

static void is_bounded(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= UNREACHABLE_MAX + 1; i++)
		unreachable_add(&u, gid(i), i);
	assert_false(unreachable_has(&u, gid(1), UNREACHABLE_MAX + 1)); /* the oldest */
	for (unsigned i = 2; i <= UNREACHABLE_MAX + 1; i++)
		assert_true(unreachable_has(&u, gid(i), UNREACHABLE_MAX + 1));
}

/* One that fails again and again has one place */
static void once(void **state)
{
	(void)state;
	for (unsigned i = 1; i < UNREACHABLE_MAX; i++)
		unreachable_add(&u, gid(i), i);
	for (unsigned i = 0; i < UNREACHABLE_MAX; i++)
		unreachable_add(&u, gid(9999), UNREACHABLE_MAX + i);
	for (unsigned i = 1; i < UNREACHABLE_MAX; i++)
		assert_true(unreachable_has(&u, gid(i), UNREACHABLE_MAX));
	assert_true(unreachable_has(&u, gid(9999), 2 * UNREACHABLE_MAX + UNREACHABLE_US - 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(forgets, setup),
		cmocka_unit_test_setup(is_bounded, setup),
		cmocka_unit_test_setup(once, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
