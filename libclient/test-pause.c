/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a client asks a server that does not accept. */
#include "libclient/pause.h"

#include "util/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

/* Attempts in @ms, which are refused at once */
static unsigned attempts(uint64_t ms, uint32_t most)
{
	uint32_t pause = 0;
	unsigned n = 0;

	for (uint64_t t = 0; t < ms; t += pause, n++)
		pause = reddn_pause_next(pause, REDDN_PAUSE_LEAST_MS, most);
	return n;
}

static void test_next(void **state)
{
	(void)state;
	/* after 20, 40, 80, 160, then 200 */
	assert_int_equal(attempts(300, 200), 4);
	assert_int_equal(attempts(301, 200), 5);
	assert_int_equal(attempts(10301, 200), 55);
	assert_int_equal(reddn_pause_next(UINT32_MAX, 20, 200), 200);
	assert_int_equal(reddn_pause_within(UINT64_MAX, 20, 200), 200);
}

static void test_jitter(void **state)
{
	bool less = false, more = false;

	(void)state;
	assert_int_equal(reddn_jitter(0), 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t ms = reddn_jitter(2000);

		assert_in_range(ms, 1500, 2500);
		less |= ms < 2000;
		more |= ms > 2000;
	}
	assert_true(less && more);
}

static void test_waiter(void **state)
{
	struct reddn_waiter w = reddn_waiter_begin(0);
	uint64_t first;

	(void)state;
	assert_false(reddn_waiter_pause(&w));
	w = reddn_waiter_begin(-1);
	first = w.pause;
	assert_true(reddn_waiter_pause(&w) && w.until == UINT64_MAX && w.pause == 2 * first);
	w = reddn_waiter_begin(1);
	while (reddn_waiter_pause(&w))
		w.pause *= 1000; /* it sleeps no longer than it may */
	assert_true(clock_ns() >= w.until);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next), cmocka_unit_test(test_jitter), cmocka_unit_test(test_waiter)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
