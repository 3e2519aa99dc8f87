/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot holds what it was made of, and stays as it is when the counters go on. */
#include "reddnd/server/stats.h"
#include "reddnd/session/group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NOW = 1000, SINCE = 400, SESSIONS = 2, WQES = 5, REQUEST_BYTES = 16 };

struct bed {
	struct catalog_offload conf;
	struct catalog catalog;
	struct program program;
	struct chain_image image;
	struct offload_stats stats;
	struct offload offload;
	struct generation generation, next;
	struct tenant tenant, *tenants;
	struct session session[SESSIONS], *sessions;
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->conf = (struct catalog_offload){.name = "get"};
	b->catalog = (struct catalog){.offloads = &b->conf, .noffloads = 1};
	b->image.arg_len = REQUEST_BYTES;
	b->stats.requests = 30;
	b->offload = (struct offload){.generation = &b->generation,
		.stats = &b->stats,
		.conf = &b->conf,
		.program = &b->program,
		.img = &b->image,
		.outcome = {.wqes = WQES}};
	b->generation = b->next = (struct generation){.catalog = &b->catalog, .offloads = &b->offload};
	snprintf(b->tenant.name, sizeof(b->tenant.name), "someone");
	b->tenant.accepted = SESSIONS;
	b->tenant.limits.sessions = 8;
	HASH_ADD_STR(b->tenants, name, &b->tenant);
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct session *s = &b->session[i];

		s->id = i + 1;
		s->first = s;
		s->connections = 1;
		s->since = SINCE;
		s->offload = &b->offload;
		s->tenant = &b->tenant;
		s->progress.done = 10 * (i + 1);
		s->counters.verdicts[VERDICT_TIME] = i;
		HASH_ADD(by_id, b->sessions, id, sizeof(s->id), s);
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	HASH_CLEAR(hh, b->tenants);
	HASH_CLEAR(by_id, b->sessions);
	free(b);
	return 0;
}

static struct stats *snapshot(struct bed *b, const struct generation *in_force)
{
	struct stats *st = stats_new(&(struct stats_source){
		.status = {.refused = 3},
		.sessions = b->sessions,
		.generation = in_force,
		.tenants = b->tenants,
		.now_us = NOW,
	});

	assert_non_null(st);
	return st;
}

static void test_all(void **state)
{
	struct bed *b = *state;
	struct stats *st = snapshot(b, &b->generation);

	assert_int_equal(st->status.refused, 3);
	assert_int_equal(st->nregions, 0);
	assert_int_equal(st->noffloads, 1);
	assert_string_equal(st->offloads[0].name, "get");
	assert_int_equal(st->offloads[0].requests, 30);
	assert_int_equal(st->ntenants, 1);
	assert_string_equal(st->tenants[0].name, "someone");
	assert_int_equal(st->tenants[0].limits.sessions, 8);
	assert_int_equal(st->nsessions, SESSIONS);
	for (unsigned i = 0; i < SESSIONS; i++) {
		const struct stats_session *s = &st->sessions[i];

		assert_int_equal(s->id, i + 1);
		assert_true(s->current);
		assert_int_equal(s->age_us, NOW - SINCE);
		assert_int_equal(s->wqes, s->requests * WQES);
		assert_int_equal(s->bytes_in, s->requests * REQUEST_BYTES);
		assert_int_equal(s->verdicts[VERDICT_TIME], i);
	}
	stats_free(st);
}

/* A session of several connections is one, with the sum of what they count */
static void test_connections(void **state)
{
	struct bed *b = *state;
	struct session *first = &b->session[0], *further = &b->session[1];
	struct stats *st;

	HASH_DELETE(by_id, b->sessions, further);
	further->id = session_next_connection(first);
	HASH_ADD(by_id, b->sessions, id, sizeof(further->id), further);
	session_join(further, first);
	assert_int_equal(first->connections, 2);
	assert_int_equal(session_number(further), 1);
	st = snapshot(b, &b->generation);
	assert_int_equal(st->nsessions, SESSIONS - 1);
	assert_int_equal(st->status.sessions, SESSIONS - 1);
	assert_int_equal(st->sessions[0].id, 1);
	assert_int_equal(st->sessions[0].connections, 2);
	assert_int_equal(st->sessions[0].requests, 10 + 20);
	assert_int_equal(st->sessions[0].verdicts[VERDICT_TIME], 0 + 1);
	stats_free(st);
}

static void test_stays(void **state)
{
	struct bed *b = *state;
	struct stats *st = snapshot(b, &b->generation);

	b->session[0].progress.done++;
	b->session[1].counters.verdicts[VERDICT_TIME]++;
	b->stats.requests++;
	b->tenant.accepted++;
	assert_int_equal(st->sessions[0].requests, 10);
	assert_int_equal(st->sessions[1].verdicts[VERDICT_TIME], 1);
	assert_int_equal(st->offloads[0].requests, 30);
	assert_int_equal(st->tenants[0].accepted, SESSIONS);
	stats_free(st);
}

/* Sessions go on with the offload that they began with */
static void test_reloaded(void **state)
{
	struct bed *b = *state;
	struct stats *st = snapshot(b, &b->next);

	assert_false(st->sessions[0].current);
	stats_free(st);
}

static void test_empty(void **state)
{
	struct catalog catalog = {0};
	struct generation generation = {.catalog = &catalog};
	struct stats *st = stats_new(&(struct stats_source){.generation = &generation});

	(void)state;
	assert_non_null(st);
	assert_int_equal(st->nsessions + st->noffloads + st->nregions + st->ntenants, 0);
	stats_free(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reloaded, setup, teardown),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
