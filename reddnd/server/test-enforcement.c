/* SPDX-License-Identifier: BSD-2-Clause */
/* Which action follows from a verdict, what it means for the address later, and how long. */
#include "reddnd/server/enforcement.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { S = 1000000, NOW = 5 * S };

static const uint8_t first[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		     again[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		     other[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

static struct enforcement e;
static struct action action;

static int setup(void **state)
{
	e = (struct enforcement){0};
	return 0;
}

static void judge(const struct verdict_policy *policy, bool fatal, uint64_t now)
{
	const struct verdict v = {.kind = VERDICT_TIME, .fatal = fatal, .text = "too slow"};

	enforcement_judge(&e, policy, first, &v, now, &action);
}

static void test_log(void **state)
{
	judge(&(struct verdict_policy){.action = VERDICT_LOG}, false, NOW);
	assert_int_equal(action.kind, ACTION_NONE);
}

/* Whatever the catalog asks for */
static void test_fatal(void **state)
{
	for (unsigned a = VERDICT_LOG; a <= VERDICT_BAN; a++) {
		judge(&(struct verdict_policy){.action = (uint8_t)a, .seconds = 1, .rate = 1}, true, NOW);
		assert_int_equal(action.kind, ACTION_END);
		assert_string_equal(action.text, "too slow");
	}
}

static void test_terminate(void **state)
{
	struct reddn_wire_rej rej;

	judge(&(struct verdict_policy){.action = VERDICT_TERMINATE}, false, NOW);
	assert_int_equal(action.kind, ACTION_END);
	assert_true(enforcement_admits(&e, again, NOW, &rej));
}

/* A throttle is for the address, and ends in time */
static void test_throttle(void **state)
{
	const struct verdict_policy policy = {.action = VERDICT_THROTTLE, .seconds = 2, .rate = 7};

	judge(&policy, false, NOW);
	assert_int_equal(action.kind, ACTION_THROTTLE);
	assert_int_equal(action.rate, 7);
	assert_int_equal(action.until_us, NOW + 2 * S);
	enforcement_begin(&e, other, NOW, &action);
	assert_int_equal(action.kind, ACTION_NONE);
	enforcement_begin(&e, again, NOW + S, &action);
	assert_int_equal(action.kind, ACTION_THROTTLE);
	assert_int_equal(action.until_us, NOW + 2 * S);
	enforcement_begin(&e, again, NOW + 3 * S, &action);
	assert_int_equal(action.kind, ACTION_NONE);
}

/* A shorter throttle does not replace a longer one: the session gets the one that is in force */
static void test_longer_throttle_stays(void **state)
{
	judge(&(struct verdict_policy){.action = VERDICT_THROTTLE, .seconds = 9, .rate = 7}, false, NOW);
	judge(&(struct verdict_policy){.action = VERDICT_THROTTLE, .seconds = 1, .rate = 8}, false, NOW);
	assert_int_equal(action.rate, 7);
	assert_int_equal(action.until_us, NOW + 9 * S);
}

static void test_ban(void **state)
{
	const struct verdict_policy policy = {.action = VERDICT_BAN, .seconds = 2};
	struct reddn_wire_rej rej;

	judge(&policy, false, NOW);
	assert_int_equal(action.kind, ACTION_END);
	assert_false(enforcement_admits(&e, again, NOW + S / 2, &rej));
	assert_string_equal(rej.text, "refused for 2 s more: too slow");
	assert_true(enforcement_admits(&e, other, NOW, &rej));
	assert_true(enforcement_admits(&e, again, NOW + 2 * S, &rej));
}

/* All addresses of an IPv6 prefix are one source, as long as the configuration makes it */
static void test_prefix(void **state)
{
	const struct verdict_policy policy = {.action = VERDICT_BAN, .seconds = 2};
	const struct verdict v = {.kind = VERDICT_TIME, .fatal = true, .text = "too slow"};
	uint8_t host[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1},
		same[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 7, 7};
	uint8_t near[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 2, 1};
	struct reddn_wire_rej rej;

	for (unsigned bits = 56; bits <= 128; bits += bits == 56 ? 8 : 64) {
		e = (struct enforcement){.source_bits = bits};
		enforcement_judge(&e, &policy, host, &v, NOW, &action);
		assert_false(enforcement_admits(&e, host, NOW, &rej));
		assert_int_equal(enforcement_admits(&e, same, NOW, &rej), bits == 128);
		assert_int_equal(enforcement_admits(&e, near, NOW, &rej), bits > 56);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_log, setup),
		cmocka_unit_test_setup(test_fatal, setup),
		cmocka_unit_test_setup(test_terminate, setup),
		cmocka_unit_test_setup(test_throttle, setup),
		cmocka_unit_test_setup(test_longer_throttle_stays, setup),
		cmocka_unit_test_setup(test_ban, setup),
		cmocka_unit_test_setup(test_prefix, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
