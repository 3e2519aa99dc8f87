/* SPDX-License-Identifier: BSD-2-Clause */
/* When graces begin and are over, and who is armed then. The stores, sessions and what is known of them are
 * the test's own; the event loop is a real one. */
#include "reddnd/server/stores.h"

#include "reddnd/session/count.h"
#include "reddnd/session/extents.h"
#include "util/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { SESSIONS = 4, WRITER = 0, READER, OTHER, FOREIGN };

static struct held_store *const one = (struct held_store *)&one, *const two = (struct held_store *)&two;

/* Of store one */
static struct {
	unsigned graces; /* that it wants */
	unsigned begun, over;
	uint64_t returned;
	bool shared;
	unsigned refs;
	uint64_t sweep_ms;
} store;

static struct session sessions[SESSIONS];
static uint64_t received[SESSIONS];
static bool gone[SESSIONS];
static unsigned armed[SESSIONS], late[SESSIONS], counted;
static unsigned goes_on_at; /* count of READER, between two looks at it; 0: never */
static struct stores stores;
static sd_event *event;

/* ---- in place of stores and sessions ---- */

bool __wrap_held_store_work(struct held_store *h);
void __wrap_held_store_grace_begins(struct held_store *h);
void __wrap_held_store_grace_over(struct held_store *h);
uint64_t __wrap_held_store_returned(const struct held_store *h);
struct held_store *__wrap_held_store_ref(struct held_store *h);
void __wrap_held_store_unref(struct held_store *h);
bool __wrap_held_store_is_shared(const struct held_store *h);
int __wrap_held_store_lock(const struct held_store *h);
uint64_t __wrap_held_store_lock_number(const struct held_store *h);
uint64_t __wrap_session_received(const struct session *s);
void __wrap_session_extents_settle(struct session *s);
void __wrap_held_store_numbers(struct held_store *h, struct store_numbers *n);

void __wrap_held_store_numbers(struct held_store *h, struct store_numbers *n)
{
	*n = (struct store_numbers){.sweep_ms = h == one ? store.sweep_ms : 0};
}

int __wrap_held_store_lock(const struct held_store *h)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

uint64_t __wrap_held_store_lock_number(const struct held_store *h)
{
	return h == one ? 7 : 0;
}

bool __wrap_held_store_work(struct held_store *h)
{
	return h == one && store.begun < store.graces;
}

void __wrap_held_store_grace_begins(struct held_store *h)
{
	assert_ptr_equal(h, one);
	store.begun++;
}

void __wrap_held_store_grace_over(struct held_store *h)
{
	assert_ptr_equal(h, one);
	store.over++;
	assert_int_equal(store.over, store.begun);
}

uint64_t __wrap_held_store_returned(const struct held_store *h)
{
	return h == one ? store.returned : 0;
}

struct held_store *__wrap_held_store_ref(struct held_store *h)
{
	store.refs += h == one;
	return h;
}

void __wrap_held_store_unref(struct held_store *h)
{
	store.refs -= h == one;
}

bool __wrap_held_store_is_shared(const struct held_store *h)
{
	return h != one || store.shared;
}

uint64_t __wrap_session_received(const struct session *s)
{
	return received[s - sessions];
}

void __wrap_session_extents_settle(struct session *s)
{
	s->extents.settled = s->progress.done;
}

static unsigned held_up_us;

static void drain(void *arg)
{
	usleep(held_up_us);
}

static void each(void *arg, void (*visit)(void *to, struct session *s), void *to)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		if (!gone[i])
			visit(to, &sessions[i]);
}

static struct session *find(void *arg, uint64_t id)
{
	return gone[id - 1] ? NULL : &sessions[id - 1];
}

static void count(void *arg, struct session *s)
{
	counted += s == &sessions[READER];
	if (s != &sessions[READER] || !goes_on_at || counted != goes_on_at)
		return;
	sessions[READER].progress.done = 7;
	received[READER] = 8;
}

static void is_late(void *arg, struct session *s, const char *region, uint64_t us)
{
	assert_string_equal(region, "");
	assert_true(us > 0);
	late[s - sessions]++;
}

static void rearm(void *arg, struct session *s)
{
	armed[s - sessions]++;
}

static const struct stores_ops ops = {
	.drain = drain, .each = each, .find = find, .late = is_late, .count = count, .rearm = rearm};

/* ---- tests ---- */

/* Turns, until none is due or a few more have changed nothing */
static void turns(void)
{
	for (unsigned n = 0; n < 5 && stores.due; n++)
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
}

static int setup(void **state)
{
	static struct catalog_region conf;
	static struct region regions[2];
	static struct region *all[2] = {&regions[0], &regions[1]};
	static struct catalog catalog = {.nregions = 2, .regions = &conf};
	static const struct generation generation = {.catalog = &catalog, .regions = all};
	static struct program program = {.nregions = 2};
	static struct offload of_one, of_two, unbound;
	static const struct catalog_offload offload_conf;
	static const struct session_engine silent = {.is_silent = true}, other;
	static struct program none;
	static uint64_t at;

	regions[0] = (struct region){.store = one, .conf = &conf};
	regions[1] = (struct region){.store = two, .conf = &conf};
	of_one = (struct offload){.conf = &offload_conf,
		.program = &program,
		.bound = {{.region = &regions[0]}, {.region = &regions[0]}}};
	of_two = (struct offload){.conf = &offload_conf,
		.program = &program,
		.bound = {{.region = &regions[1]}, {.region = &regions[1]}}};
	unbound = (struct offload){.conf = &offload_conf, .program = &none};
	store.graces = store.begun = store.over = 0;
	store.returned = store.sweep_ms = 0;
	store.shared = true;
	for (unsigned i = 0; i < SESSIONS; i++) {
		sessions[i] = (struct session){.id = i + 1,
			.engine = i == READER ? &silent : &other,
			.offload = i == OTHER ? &of_two : &of_one};
		received[i] = armed[i] = late[i] = 0;
		gone[i] = false;
	}
	sessions[WRITER].extents.at = &at;
	sessions[WRITER].extents.store = one;
	sessions[FOREIGN].offload = &unbound;
	sessions[FOREIGN].foreign = (struct foreign *)&unbound;
	assert_true(sd_event_new(&event) >= 0);
	assert_true(stores_init(&stores, event, &ops, NULL) >= 0);
	stores_serve(&stores, &generation);
	stores_serve(&stores, &generation);
	assert_int_equal(store.refs, 1);
	assert_int_equal(stores.served, 1); /* store one goes on with the number that was left */
	turns();
	assert_false(stores.due);
	counted = goes_on_at = 0;
	return 0;
}

static int teardown(void **state)
{
	stores_deinit(&stores);
	sd_event_unref(event);
	assert_int_equal(store.refs, 0);
	return 0;
}

/* Where nobody has asked for anything, graces follow each other at once */
static void test_nobody(void **state)
{
	store.graces = 3;
	stores_wake(&stores);
	turns();
	assert_int_equal(store.over, 3);
	assert_false(stores.due);
}

/* A turn comes by itself for what expires, and sooner for what a session changes */
static void test_expiry(void **state)
{
	int enabled;

	assert_true(sd_event_source_get_enabled(stores.timer, &enabled) >= 0 && enabled == SD_EVENT_OFF);
	store.sweep_ms = UINT64_MAX;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_int_equal(store.over, 1);
	assert_false(stores.due);
	assert_true(sd_event_source_get_enabled(stores.timer, &enabled) >= 0 && enabled == SD_EVENT_ONESHOT);
	store.graces = 2;
	stores_wake(&stores);
	assert_true(stores.due);
	turns();
	assert_int_equal(store.over, 2);
	/* it is over */
	store.sweep_ms = 1;
	stores_wake(&stores);
	turns();
	store.graces = 3;
	while (store.over < 3)
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
}

/* A request of @i had begun: the grace lasts until it is over */
static void wait_for(unsigned i)
{
	received[i] = 5;
	sessions[i].progress.done = 4;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_true(store.begun == 1 && store.over == 0 && stores.due);
	received[i] = 9; /* those that come later do not count */
	sessions[i].progress.done = 5;
	turns();
	assert_true(store.over == 1 && !stores.due);
}

static void test_a_put(void **state)
{
	wait_for(WRITER);
}

static void test_a_get(void **state)
{
	wait_for(READER);
	assert_true(counted > 0);
}

/* The NIC has gone round its CQ since the count: the CQE that was looked at is that of a later request */
static void test_a_get_of_a_session_that_goes_on(void **state)
{
	sessions[READER].progress.done = received[READER] = 4;
	goes_on_at = 2;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_true(store.begun == 1 && store.over == 0);
	sessions[READER].progress.done = 8;
	turns();
	assert_int_equal(store.over, 1);
}

/* Once in a grace */
static void test_a_get_that_does_not_end(void **state)
{
	received[READER] = 1;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_int_equal(late[READER], 0);
	stores.patience_us = 0;
	turns();
	assert_true(late[READER] == 1 && late[WRITER] == 0 && store.over == 0);
}

/* This process does nothing for longer than that: the CPU may not have executed the request either */
static void test_a_daemon_that_stands_still(void **state)
{
	received[READER] = 1;
	store.graces = 1;
	stores.patience_us = 250000;
	stores_wake(&stores);
	assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	assert_true(store.begun == 1 && store.over == 0);
	usleep(300000);
	assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	assert_int_equal(late[READER], 0);
	while (!late[READER])
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	sessions[READER].progress.done = 1;
	turns();
	assert_int_equal(store.over, 1);
}

static void test_one_of_an_offload_that_is_not_known(void **state)
{
	wait_for(FOREIGN);
}

static void test_another_store(void **state)
{
	received[OTHER] = 1;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_int_equal(store.over, 1);
}

/* It is not paid for by turns that come later */
static void test_a_turn_in_which_others_have_the_cpu(void **state)
{
	held_up_us = 50000;
	stores_turn(&stores);
	held_up_us = 0;
	assert_true(stores.not_before < clock_us() + 50000);
}

static void test_the_session_ends(void **state)
{
	received[READER] = received[WRITER] = 1;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_true(store.begun == 1 && store.over == 0);
	gone[READER] = true;
	turns();
	assert_int_equal(store.over, 0);
	gone[WRITER] = true;
	turns();
	assert_int_equal(store.over, 1);
}

/* One that waits is armed when something has come back, and no sooner: it would wait again */
static void test_waiting(void **state)
{
	sessions[WRITER].extents.waits = true;
	stores_wake(&stores);
	turns();
	assert_int_equal(armed[WRITER], 0);
	store.returned++;
	stores_wake(&stores);
	turns();
	stores_wake(&stores);
	turns();
	assert_true(armed[WRITER] == 1 && armed[READER] == 0);
}

/* Without a region that has it, it is closed at the next turn */
static void test_no_region(void **state)
{
	store.shared = false;
	store.graces = 1;
	stores_wake(&stores);
	turns();
	assert_true(store.refs == 0 && store.begun == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expiry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_put, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_get, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_get_of_a_session_that_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_get_that_does_not_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_daemon_that_stands_still, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_turn_in_which_others_have_the_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_of_an_offload_that_is_not_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_store, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_session_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_region, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
