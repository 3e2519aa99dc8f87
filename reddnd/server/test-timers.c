/* SPDX-License-Identifier: BSD-2-Clause */
/* What is due for a session, and when: connecting, idleness, a throttle. */
#include "reddnd/server/timers.h"

#include "reddnd/session/count.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { S = 1000000, BEGIN = 10 * S, CONNECT = S, IDLE = 4 * S };

static const struct timers timers = {.connect_timeout = CONNECT};
static struct tenant tenant;
static struct session session;
static struct action action;

/* No queue is looked at here: the client has asked for nothing */
bool __wrap_session_is_idle(struct session *s, uint64_t now, uint64_t limit);
bool __wrap_session_is_idle(struct session *s, uint64_t now, uint64_t limit)
{
	return now - s->timer.idle.since >= limit;
}

static int setup(void **state)
{
	tenant = (struct tenant){0};
	session = (struct session){
		.first = &session, .since = BEGIN, .tenant = &tenant, .timer.idle.since = BEGIN};
	return 0;
}

static enum action_kind check(uint64_t now)
{
	timers_check(&timers, &session, now, &action);
	return action.kind;
}

static void test_connect(void **state)
{
	assert_int_equal(check(BEGIN + CONNECT - 1), ACTION_NONE);
	assert_int_equal(check(BEGIN + CONNECT), ACTION_END);
	assert_int_equal(action.reason, REDDN_WIRE_END_UNREACHABLE);
	session.state = SESSION_ESTABLISHED;
	assert_int_equal(check(BEGIN + CONNECT), ACTION_NONE);
}

/* The message that completes the connection may be lost */
static void test_request_connects(void **state)
{
	session.progress.done = 1;
	assert_int_equal(check(BEGIN + CONNECT), ACTION_NONE);
}

static void test_idle(void **state)
{
	session.state = SESSION_ESTABLISHED;
	assert_int_equal(check(BEGIN + IDLE), ACTION_NONE);
	tenant.limits.idle_timeout = IDLE;
	assert_int_equal(check(BEGIN + IDLE - 1), ACTION_NONE);
	assert_int_equal(check(BEGIN + IDLE), ACTION_END);
	assert_int_equal(action.reason, REDDN_WIRE_END_IDLE);
	assert_string_equal(action.text, "the client has asked for nothing for 4000 ms");
}

static void test_throttle_ends(void **state)
{
	session.state = SESSION_ESTABLISHED;
	session.limits.throttle.until = BEGIN + 2 * S;
	assert_int_equal(check(BEGIN + 2 * S - 1), ACTION_NONE);
	assert_int_equal(check(BEGIN + 2 * S), ACTION_UNTHROTTLE);
	/* One that ends meanwhile needs none */
	session.state = SESSION_ACCEPTED;
	assert_int_equal(check(BEGIN + 2 * S), ACTION_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_connect, setup),
		cmocka_unit_test_setup(test_request_connects, setup),
		cmocka_unit_test_setup(test_idle, setup),
		cmocka_unit_test_setup(test_throttle_ends, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
