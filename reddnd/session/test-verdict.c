/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/bans.h"
#include "reddnd/session/events.h"
#include "reddnd/session/verdict.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(verdict_kind_of(RNIC_SYNDROME_RNR, true), VERDICT_RNR);
	assert_int_equal(verdict_kind_of(RNIC_SYNDROME_RETRIES, true), VERDICT_UNREACHABLE);
	/* between queues of the chain they say nothing of the client */
	assert_int_equal(verdict_kind_of(RNIC_SYNDROME_RNR, false), VERDICT_STEP);
	assert_int_equal(verdict_kind_of(RNIC_SYNDROME_RETRIES, false), VERDICT_STEP);
	assert_int_equal(verdict_kind_of(0x13, true), VERDICT_STEP);
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		assert_int_equal(verdict_kind_named(verdict_kind_name(k)), k);
	assert_int_equal(verdict_kind_named("steps"), VERDICT_KINDS);
}

static void test_policies(void **state)
{
	static const char *const wrong[] = {"", "Log", "kick", "ban", "ban:", "ban:60", "ban:0s", "ban:999ms",
		"ban:1d", "ban:800h", "log "};
	struct verdict_policy p = {0};

	(void)state;
	assert_int_equal(verdict_policy_parse("log", &p), 0);
	assert_int_equal(p.action, VERDICT_LOG);
	assert_int_equal(verdict_policy_parse("throttle:100:1m", &p), 0);
	assert_true(p.action == VERDICT_THROTTLE && p.rate == 100 && p.seconds == 60);
	assert_int_equal(verdict_policy_parse("terminate", &p), 0);
	assert_int_equal(p.action, VERDICT_TERMINATE);
	assert_int_equal(verdict_policy_parse("ban:5m", &p), 0);
	assert_int_equal(p.action, VERDICT_BAN);
	assert_int_equal(p.seconds, 300);
	assert_int_equal(verdict_policy_parse("ban:1500ms", &p), 0);
	assert_int_equal(p.seconds, 2);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(verdict_policy_parse(wrong[i], &p), -EINVAL);
}

static void test_silence(void **state)
{
	struct verdict_silence s = {0};

	(void)state;
	assert_int_equal(verdict_silent(&s, 7, false, 1000, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2000, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2100, 100), 0);
	assert_int_equal(verdict_silent(&s, 7, true, 2101, 100), 101);
	/* once */
	assert_int_equal(verdict_silent(&s, 7, true, 9000, 100), 0);
	/* the next one has a time of its own */
	assert_int_equal(verdict_silent(&s, 8, true, 9001, 100), 0);
	assert_int_equal(verdict_silent(&s, 8, true, 9101, 100), 0);
	assert_int_equal(verdict_silent(&s, 8, true, 9102, 100), 101);
	/* answered, and the next is not there yet */
	assert_int_equal(verdict_silent(&s, 9, false, 9200, 100), 0);
	assert_int_equal(verdict_silent(&s, 9, true, 99999, 100), 0);
	assert_int_equal(verdict_silent(&s, 9, true, 100100, 100), 101);
}

static void test_idle(void **state)
{
	struct verdict_idle i = {.since = 1000};

	(void)state;
	assert_false(verdict_is_idle(&i, 0, false, 1099, 100));
	assert_true(verdict_is_idle(&i, 0, false, 1100, 100));
	/* asked, since the last look; time begins anew with this one */
	assert_false(verdict_is_idle(&i, 5, false, 1150, 100));
	assert_false(verdict_is_idle(&i, 5, false, 1249, 100));
	assert_true(verdict_is_idle(&i, 5, false, 1250, 100));
	/* a chain that takes its time is not idle */
	assert_false(verdict_is_idle(&i, 5, true, 1300, 100));
	assert_false(verdict_is_idle(&i, 5, true, 9000, 100));
	assert_false(verdict_is_idle(&i, 6, false, 9100, 100));
	assert_true(verdict_is_idle(&i, 6, false, 9200, 100));
}

static const char text[] = "program one\n"
			   "\n"
			   "write_imm 7 as be64 -> slot @ 0\n";

static void test_steps(void **state)
{
	const struct program_source source = {.name = "/x/one.rdn", .text = text, .len = sizeof text - 1};
	const struct program_target target = {0};
	struct rnic_cqe cqe = {.error = true, .syndrome = RNIC_SYNDROME_RNR, .vendor = 0x68};
	struct program *p = NULL;
	char *messages = NULL;
	uint32_t w, last = 0;
	struct verdict v;

	(void)state;
	assert_int_equal(program_compile(&source, NULL, 0, &target, &p, &messages), 0);
	for (w = 0; w < p->image->queue[0].wqebbs; w++)
		if (p->image->queue[0].starts[w])
			last = w;
	verdict_of_step(&v, p, "/x/one.rdn", 0, last, &cqe);
	assert_int_equal(v.kind, VERDICT_RNR);
	assert_true(v.fatal);
	assert_int_equal(v.line, 3);
	assert_string_equal(v.path, "/x/one.rdn");
	assert_non_null(strstr(v.text, ", one.rdn:3"));
	assert_non_null(strstr(v.text, "(0x68)"));
	/* the wait for the request */
	cqe.syndrome = 0x02;
	verdict_of_step(&v, p, "/x/one.rdn", 0, 0, &cqe);
	assert_int_equal(v.kind, VERDICT_STEP);
	verdict_of_step(&v, p, "/x/one.rdn", 0, p->image->queue[0].wqebbs, &cqe);
	assert_string_equal(v.step, "pad");
	assert_int_equal(v.line, 0);
	program_free(p);
}

static void test_bans(void **state)
{
	struct bans *b = calloc(1, sizeof *b);
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
		snprintf(peer, sizeof peer, "2001:db8::%x port 7", i);
		bans_add(b, peer, 5000 + i, 0, "many");
	}
	assert_int_equal(b->n, BANS_MAX);
	/* those that would have ended first have made room */
	assert_null(bans_find(b, "2001:db8::9 port 7", 1));
	assert_non_null(bans_find(b, "2001:db8::a port 7", 1));
	assert_non_null(bans_find(b, peer, 1));
	free(b);
}

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
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_bans),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
