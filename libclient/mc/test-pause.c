/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a client tries a memcached that does not answer. */
#include "libclient/mc/pause.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Attempts in @ms, each of which takes @took_ms */
static unsigned attempts(uint64_t ms, uint64_t took_ms)
{
	uint64_t pause = 0;
	unsigned n = 0;

	for (uint64_t t = 0; t < ms; t += took_ms + pause, n++)
		pause = mc_pause_next(pause, took_ms);
	return n;
}

static void test_pause(void **state)
{
	(void)state;
	/* refused at once: 20, 40, 80, 160, then 200 */
	assert_int_equal(attempts(300, 0), 4);
	assert_int_equal(attempts(301, 0), 5);
	assert_int_equal(attempts(10301, 0), 55);
	/* a fifth of the time at most */
	assert_int_equal(attempts(50000, 1000), 10);
	assert_int_equal(mc_pause_next(4000, 0), MC_PAUSE_MOST_MS);
	/* it answered meanwhile */
	assert_int_equal(mc_pause_next(0, 1), MC_PAUSE_LEAST_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_pause)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
