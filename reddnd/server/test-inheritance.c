/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of the daemon before, when there is no memory for their timers. They have no queues here. */
#include "reddnd/server/inheritance.c"

#include "reddnd/policy/offload-stats.h"
#include "reddnd/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { NUMBER = 7, QPN = 0x100 };

static uint64_t without_timer; /* the connection that gets none */
static struct catalog_offload conf = {.name = "o"};
static struct offload_stats stats;
static const struct offload offload = {.conf = &conf, .stats = &stats};
static struct tenant tenant = {.name = "t"};
static struct ledger_slot slots[2];
static struct session sessions[2];
static struct dispatch d;
static struct shared shared;

/* ---- in place of memory and of the device ---- */

int __wrap_timers_begin(struct timers *t, struct session *s);
void __wrap_accounting_update(struct accounting *a, struct session *s);
void __wrap_session_end(struct session *s);

int __wrap_timers_begin(struct timers *t, struct session *s)
{
	return s->id == without_timer ? -ENOMEM : 0;
}

void __wrap_accounting_update(struct accounting *a, struct session *s)
{
}

void __wrap_session_end(struct session *s)
{
	session_set_state(s, SESSION_ENDED);
}

/* ---- */

static int setup(void **state)
{
	memset(&d, 0, sizeof(d));
	memset(&shared, 0, sizeof(shared));
	d.shared = &shared;
	TAILQ_INIT(&d.ended);
	shared.record = calloc(1, sizeof(*shared.record));
	shared.events = events_new();
	stats = (struct offload_stats){0};
	for (unsigned i = 0; i < 2; i++)
		sessions[i] = (struct session){.id = NUMBER + ((uint64_t)i << LEDGER_CONNECTION_SHIFT),
			.first = &sessions[i],
			.state = SESSION_ACCEPTED,
			.engine = &engine_unrolled,
			.connections = 1,
			.offload = &offload,
			.tenant = &tenant,
			.slot = &slots[i],
			.client.peer = "a client",
			.queues = {.qpn = QPN + i}};
	return shared.record && shared.events ? 0 : -1;
}

static int teardown(void **state)
{
	HASH_CLEAR(by_id, d.sessions);
	HASH_CLEAR(by_qpn, d.completions.by_qpn);
	events_free(shared.events);
	free(shared.record);
	return 0;
}

static void adopt_one(unsigned i)
{
	adoption_add(&d, &sessions[i]);
}

static unsigned events(void)
{
	uint64_t next = 0, lost;
	unsigned n = 0;

	while (events_next(shared.events, &next, &lost))
		n++;
	return n;
}

static void all_go_on(void **state)
{
	without_timer = 0;
	adopt_one(0);
	adopt_one(1);
	assert_int_equal(stats.sessions, 1);
	assert_int_equal(HASH_CNT(by_id, d.sessions), 2);
	assert_int_equal(events(), 0);
}

static void no_timer_for_a_session(void **state)
{
	without_timer = sessions[0].id;
	adopt_one(0);
	assert_int_equal(stats.sessions, 0);
	assert_true(session_is_over(&sessions[0]));
	assert_int_equal(events(), 1);
}

/* A connection is counted with the session that it will join: its end is not that of a session */
static void no_timer_for_a_connection(void **state)
{
	without_timer = sessions[1].id;
	adopt_one(1);
	adopt_one(0);
	assert_int_equal(stats.sessions, 1);
	assert_true(session_is_over(&sessions[1]));
	assert_false(session_is_over(&sessions[0]));
	assert_int_equal(HASH_CNT(by_id, d.sessions), 1);
	assert_int_equal(stats.failed, 0);
	assert_int_equal(events(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(no_timer_for_a_session, setup, teardown),
		cmocka_unit_test_setup_teardown(no_timer_for_a_connection, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
