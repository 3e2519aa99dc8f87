/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot holds what it was made of. */
#include "reddnd/server/devices.h"
#include "reddnd/server/stats.h"
#include "reddnd/session/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { DEVICES = 2, NOW = 1000, SINCE = 400, SESSIONS = 2, WQES = 5, REQUEST_BYTES = 16 };

/* ---- in place of devices ---- */

static struct {
	const char *name;
	struct rnic_caps caps;
	bool lost;
} devices[DEVICES];

const char *__wrap_rnic_device_name(const struct rnic_device *dev);
const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev);
bool __wrap_rnic_device_is_lost(const struct rnic_device *dev);
uint64_t __wrap_rnic_arena_used(const struct rnic_arena *arena);
uint64_t __wrap_rnic_arena_size(const struct rnic_arena *arena);

static unsigned number(const struct rnic_device *dev)
{
	return (const void *)dev == &devices[1];
}

const char *__wrap_rnic_device_name(const struct rnic_device *dev)
{
	return number(dev) ? "second" : "first";
}

const struct rnic_caps *__wrap_rnic_device_caps(const struct rnic_device *dev)
{
	return &devices[number(dev)].caps;
}

bool __wrap_rnic_device_is_lost(const struct rnic_device *dev)
{
	return devices[number(dev)].lost;
}

uint64_t __wrap_rnic_arena_used(const struct rnic_arena *arena)
{
	return 10;
}

uint64_t __wrap_rnic_arena_size(const struct rnic_arena *arena)
{
	return 100;
}

/* ---- */

struct bed {
	struct catalog_offload conf;
	struct catalog catalog;
	struct program program;
	struct chain_image image;
	struct offload_stats stats;
	struct offload offload, other; /* the same of another device */
	struct served served;
	struct generation generation, next;
	struct tenant tenant, *tenants;
	struct session session[SESSIONS], *sessions, *elsewhere;
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
	b->other = b->offload;
	b->served.n = 1;
	for (unsigned k = 0; k < DEVICES; k++)
		b->served.device[k].dev = (struct rnic_device *)&devices[k];
	b->generation = b->next =
		(struct generation){.catalog = &b->catalog, .offloads = &b->offload, .served = &b->served};
	snprintf(b->tenant.name, sizeof(b->tenant.name), "someone");
	HASH_ADD_STR(b->tenants, name, &b->tenant);
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct session *s = &b->session[i];

		s->id = i + 1;
		s->first = s;
		s->engine = &engine_unrolled;
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
	HASH_CLEAR(by_id, b->elsewhere);
	devices[1].lost = false;
	free(b);
	return 0;
}

static unsigned firsts(const struct session *s)
{
	unsigned n = 0;

	for (; s; s = s->by_id.next)
		n += s->first == s;
	return n;
}

static struct stats *snapshot(struct bed *b, const struct generation *in_force)
{
	struct stats *st = stats_new(&(struct stats_source){
		.status = {.counts.refused = 3},
		.sessions = {b->sessions, b->elsewhere},
		.nsessions = {firsts(b->sessions), firsts(b->elsewhere)},
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

	assert_int_equal(st->status.counts.refused, 3);
	assert_int_equal(st->nregions, 0);
	assert_int_equal(st->noffloads, 1);
	assert_string_equal(st->offloads[0].of->conf->name, "get");
	assert_int_equal(st->offloads[0].of->stats->requests, 30);
	assert_ptr_equal(st->tenants, &b->tenant);
	assert_int_equal(st->nsessions, SESSIONS);
	for (unsigned i = 0; i < SESSIONS; i++) {
		const struct stats_session *s = &st->sessions[i];

		assert_int_equal(s->id, i + 1);
		assert_true(s->current);
		assert_string_equal(s->device, "first");
		assert_int_equal(s->age_us, NOW - SINCE);
		assert_int_equal(s->wqes, s->requests * WQES);
		assert_int_equal(s->bytes_in, s->requests * REQUEST_BYTES);
		assert_int_equal(s->verdicts[VERDICT_TIME], i);
	}
	stats_free(st);
}

/* What it takes no look at sessions for */
static void test_overview(void **state)
{
	struct bed *b = *state;
	struct stats st;

	b->served.n = DEVICES;
	stats_overview(&st, &(struct stats_source){
				    .status = {.counts.refused = 3},
				    .nsessions = {5, 6},
				    .generation = &b->generation,
			    });
	assert_int_equal(st.status.counts.refused, 3);
	assert_int_equal(st.status.sessions, 5 + 6);
	assert_int_equal(st.ndevices, 2);
	assert_int_equal(st.devices[0].sessions, 5);
	assert_int_equal(st.devices[1].sessions, 6);
	assert_null(st.sessions);
}

/* A session of several connections is one, with the sum of what they count */
static void test_connections(void **state)
{
	struct bed *b = *state;
	struct session *first = &b->session[0], *further = &b->session[1];
	struct stats *st;

	HASH_DELETE(by_id, b->sessions, further);
	further->id = first->id + (UINT64_C(1) << LEDGER_CONNECTION_SHIFT);
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

/* Sessions of two devices, by number; an offload as it is where it is worst */
static void test_devices(void **state)
{
	struct bed *b = *state;
	struct session *older = &b->session[0];
	struct offload both[DEVICES];
	struct stats *st;

	b->served.n = DEVICES;
	both[0] = b->offload;
	both[1] = b->other;
	both[1].cpu = true;
	b->generation.offloads = both;
	HASH_DELETE(by_id, b->sessions, older);
	HASH_ADD(by_id, b->elsewhere, id, sizeof(older->id), older);
	st = snapshot(b, &b->generation);
	assert_int_equal(st->ndevices, DEVICES);
	assert_string_equal(st->devices[1].name, "second");
	assert_int_equal(st->devices[0].sessions, 1);
	assert_int_equal(st->devices[1].sessions, 1);
	assert_int_equal(st->status.sessions, SESSIONS);
	assert_int_equal(st->status.arena_used, 20);
	assert_int_equal(st->status.arena_size, 200);
	assert_int_equal(st->sessions[0].id, 1);
	assert_string_equal(st->sessions[0].device, "second");
	assert_string_equal(st->sessions[1].device, "first");
	assert_int_equal(st->noffloads, 1);
	assert_true(st->offloads[0].of->cpu);
	assert_string_equal(st->offloads[0].device, "second");
	stats_free(st);
	both[0].recycled = true;
	both[1].cpu = false;
	st = snapshot(b, &b->generation);
	assert_false(st->offloads[0].of->recycled);
	assert_string_equal(st->offloads[0].device, "second");
	stats_free(st);
	b->generation.lost[1] = devices[1].lost = true;
	st = snapshot(b, &b->generation);
	assert_true(st->devices[1].lost);
	assert_string_equal(st->devices[1].left_out, "");
	assert_false(st->offloads[0].of->cpu);
	assert_string_equal(st->offloads[0].device, "");
	stats_free(st);
}

/* A device that the daemon began without is behind the others, with the reason. */
static void test_left_out(void **state)
{
	const struct device_left_out left_out = {.name = "third", .why = "it is gone"};
	struct bed *b = *state;
	struct stats *st = stats_new(
		&(struct stats_source){.generation = &b->generation, .left_out = &left_out, .nleft_out = 1});

	assert_int_equal(st->ndevices, 2);
	assert_string_equal(st->devices[0].left_out, "");
	assert_string_equal(st->devices[1].name, "third");
	assert_string_equal(st->devices[1].left_out, "it is gone");
	assert_string_equal(st->devices[1].no_chains, "");
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
	struct served served = {0};
	struct generation generation = {.catalog = &catalog, .served = &served};
	struct stats *st = stats_new(&(struct stats_source){.generation = &generation});

	assert_non_null(st);
	assert_int_equal(st->nsessions + st->noffloads + st->nregions, 0);
	assert_null(st->tenants);
	stats_free(st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overview, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(test_devices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reloaded, setup, teardown),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
