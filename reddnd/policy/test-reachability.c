/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/cmocka.h"

#include "reddnd/policy/reachability.h"

#include <string.h>

static struct reachability r;

static const uint8_t *gid(unsigned n)
{
	static uint8_t g[16];

	memcpy(g, &n, sizeof(n));
	return g;
}

static int setup(void **state)
{
	memset(&r, 0, sizeof(r));
	return 0;
}

static void forgets(void **state)
{
	assert_false(reachability_is_silent(&r, gid(0), 0));
	assert_false(reachability_is_known(&r, gid(0), 0));
	reachability_failed(&r, gid(1), 100);
	assert_true(reachability_is_silent(&r, gid(1), 100 + REACHABILITY_SILENT_US - 1));
	assert_false(reachability_is_silent(&r, gid(1), 100 + REACHABILITY_SILENT_US));
	assert_false(reachability_is_silent(&r, gid(2), 100));
	reachability_answered(&r, gid(2), 100);
	assert_true(reachability_is_known(&r, gid(2), 100 + REACHABILITY_KNOWN_US - 1));
	assert_false(reachability_is_known(&r, gid(2), 100 + REACHABILITY_KNOWN_US));
	assert_false(reachability_is_known(&r, gid(1), 100));
}

static void is_bounded(void **state)
{
	for (unsigned i = 1; i <= REACHABILITY_SILENT + 1; i++)
		reachability_failed(&r, gid(i), i);
	assert_false(reachability_is_silent(&r, gid(1), REACHABILITY_SILENT + 1)); /* the oldest */
	for (unsigned i = 2; i <= REACHABILITY_SILENT + 1; i++)
		assert_true(reachability_is_silent(&r, gid(i), REACHABILITY_SILENT + 1));
}

/* One that fails again and again has one place */
static void once(void **state)
{
	for (unsigned i = 1; i < REACHABILITY_SILENT; i++)
		reachability_failed(&r, gid(i), i);
	for (unsigned i = 0; i < REACHABILITY_SILENT; i++)
		reachability_failed(&r, gid(9999), REACHABILITY_SILENT + i);
	for (unsigned i = 1; i < REACHABILITY_SILENT; i++)
		assert_true(reachability_is_silent(&r, gid(i), REACHABILITY_SILENT));
	assert_true(
		reachability_is_silent(&r, gid(9999), 2 * REACHABILITY_SILENT + REACHABILITY_SILENT_US - 2));
}

/* Those that do not answer displace none that did; one that did, and does no longer, is not known any more */
static void known_ones_stay(void **state)
{
	reachability_answered(&r, gid(7), 1);
	for (unsigned i = 1000; i < 10000; i++)
		reachability_failed(&r, gid(i), i);
	assert_true(reachability_is_known(&r, gid(7), 10000));
	reachability_failed(&r, gid(7), 10000);
	assert_false(reachability_is_known(&r, gid(7), 10001));
	for (unsigned i = 0; i < REACHABILITY_KNOWN; i++)
		reachability_answered(&r, gid(i), 20000 + i);
	reachability_answered(&r, gid(0), 30000); /* one place each */
	for (unsigned i = 0; i < REACHABILITY_KNOWN; i++)
		assert_true(reachability_is_known(&r, gid(i), 30000));
	reachability_answered(&r, gid(9999), 30001);
	assert_false(reachability_is_known(&r, gid(1), 30001)); /* the oldest */
	assert_true(reachability_is_known(&r, gid(0), 30001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(forgets, setup),
		cmocka_unit_test_setup(is_bounded, setup),
		cmocka_unit_test_setup(once, setup),
		cmocka_unit_test_setup(known_ones_stay, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
