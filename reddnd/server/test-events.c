/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/events.h"
#include "reddnd/util/log.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void heard(void *arg)
{
	++*(unsigned *)arg;
}

static void test_events(void **state)
{
	struct events *ev = events_new();
	struct event e = {.kind = EVENT_REFUSED, .level = LOG_INFO, .text = "words"};
	const struct event *got;
	uint64_t next, lost;
	unsigned n = 0;

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

static void add(struct events *ev, enum event_kind kind, uint8_t source, const char *text)
{
	struct event e = {.kind = (uint8_t)kind, .level = LOG_INFO, .peer = "somebody", .source = {{source}}};

	snprintf(e.text, sizeof(e.text), "%s", text);
	events_add(ev, &e);
}

static unsigned count(const struct events *ev, const char *text)
{
	uint64_t next = events_first(ev), lost, last = 0;
	const struct event *e;
	unsigned n = 0;

	while ((e = events_next(ev, &next, &lost))) {
		assert_true(e->number > last);
		last = e->number;
		n += strcmp(e->text, text) == 0;
	}
	return n;
}

/* Whatever clients do, and however often: the verdicts of others are still there */
static void test_apart(void **state)
{
	struct events *ev = events_new();

	log_init(LOG_ERR);
	add(ev, EVENT_VERDICT, 1, "incident");
	for (unsigned i = 0; i < 100000; i++)
		add(ev, i % 3 == 0 ? EVENT_REFUSED : i % 3 == 1 ? EVENT_BEGINS : EVENT_ENDS, 2, "noise");
	assert_int_equal(count(ev, "incident"), 1);
	assert_int_equal(count(ev, "noise"), EVENTS_KEPT);
	for (unsigned i = 0; i < 10000; i++)
		add(ev, EVENT_VERDICT, 3, "more verdicts");
	assert_int_equal(count(ev, "incident"), 1);
	assert_int_equal(count(ev, "more verdicts"), EVENTS_KEPT_APART - 1);
	add(ev, EVENT_VERDICT, 4, "another incident");
	assert_int_equal(count(ev, "another incident"), 1);
	for (unsigned i = 0; i < 10000; i++)
		add(ev, EVENT_VERDICT, 3, "more verdicts");
	assert_int_equal(count(ev, "another incident"), 1);
	events_free(ev);
}

static struct source v6(unsigned network, unsigned n)
{
	return (struct source){{0x20, 1, 0xd, 0xb8, 0, (uint8_t)network, (uint8_t)(n >> 8), (uint8_t)n}};
}

/* One with all prefixes of a network displaces only what comes from that network, and one with many addresses
 * in the network of others only its own */
static void test_networks(void **state)
{
	struct event e = {.kind = EVENT_VERDICT, .level = LOG_INFO, .peer = "somebody"};
	struct events *ev = events_new();

	log_init(LOG_ERR);
	e.source = v6(1, 0);
	strcpy(e.text, "incident");
	events_add(ev, &e);
	e.source = (struct source){{0}};
	e.kind = EVENT_RELOADED;
	strcpy(e.text, "reload");
	events_add(ev, &e);
	e.kind = EVENT_VERDICT;
	strcpy(e.text, "noise");
	for (unsigned i = 0; i < 10000; i++) {
		e.source = v6(2, i);
		events_add(ev, &e);
	}
	assert_int_equal(count(ev, "incident"), 1);
	assert_int_equal(count(ev, "reload"), 1);
	assert_int_equal(count(ev, "noise"), EVENTS_KEPT_APART - 2);
	e.source = v6(2, 10000);
	strcpy(e.text, "a neighbour's");
	events_add(ev, &e);
	strcpy(e.text, "noise");
	e.source = v6(2, 7);
	for (unsigned i = 0; i < 10000; i++)
		events_add(ev, &e);
	assert_int_equal(count(ev, "a neighbour's"), 1);
	assert_int_equal(count(ev, "incident"), 1);
	events_free(ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
