/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/events.h"
#include "reddnd/util/log.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void heard(void *arg)
{
	++*(unsigned *)arg;
}

static void test_events(void **state)
{
	struct events *ev = events_new();
	struct event e = {.kind = EVENT_RELOADED, .level = LOG_INFO, .text = "words"};
	const struct event *got;
	uint64_t next, lost;
	unsigned n = 0;

	(void)state;
	log_init(LOG_ERR);
	next = events_first(ev);
	assert_int_equal(next, 1);
	assert_null(events_next(ev, &next, &lost));
	events_listen(ev, heard, &n);
	events_add(ev, &e);
	assert_int_equal(n, 1);
	got = events_next(ev, &next, &lost);
	assert_int_equal(got->number, 1);
	assert_true(got->time_us > 0);
	assert_string_equal(got->text, "words");
	assert_int_equal(lost, 0);
	assert_null(events_next(ev, &next, &lost));
	for (unsigned i = 0; i < EVENTS_KEPT + 5; i++)
		events_add(ev, &e);
	/* 2 to 6 were dropped, unread */
	got = events_next(ev, &next, &lost);
	assert_int_equal(lost, 5);
	assert_int_equal(got->number, 7);
	for (unsigned i = 1; i < EVENTS_KEPT; i++) {
		got = events_next(ev, &next, &lost);
		assert_int_equal(got->number, 7 + i);
		assert_int_equal(lost, 0);
	}
	assert_null(events_next(ev, &next, &lost));
	events_listen(ev, NULL, NULL);
	events_add(ev, &e);
	assert_int_equal(n, EVENTS_KEPT + 6);
	events_free(ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
