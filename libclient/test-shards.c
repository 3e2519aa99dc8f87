/* SPDX-License-Identifier: BSD-2-Clause */
/* Shards without sessions: who is asked for a key, and where requests go that came to another one. */
#include "libclient/shards.h"

#include "protocol/redis-slots.h"
#include "util/clock.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SHARDS = 3, REQUESTS = 2, KEY = 16 };

static struct reddn whole, shard[SHARDS];
static struct reddn_request requests[SHARDS][REQUESTS];
static uint8_t keys[SHARDS][REQUESTS][KEY];

/* All have sessions, and as many slots as the others */
static int begin(void **state)
{
	memset(&whole, 0, sizeof(whole));
	memset(shard, 0, sizeof(shard));
	memset(requests, 0, sizeof(requests));
	whole.is_whole = true;
	whole.pause_until = UINT64_MAX;
	whole.connector.timer = -1;
	whole.parts = shard;
	for (unsigned i = 0; i < SHARDS; i++) {
		shard[i].owner = &whole;
		shard[i].shard = &shard[i];
		shard[i].next_part = i + 1 < SHARDS ? &shard[i + 1] : NULL;
		shard[i].state = REDDN_UP;
		shard[i].slots = redis_slots(i * 5000, 5000);
		shard[i].key_room = shard[i].session.geo.max_key = KEY;
		shard[i].session.geo.keys = 1;
		for (unsigned k = 0; k < REQUESTS; k++) {
			requests[i][k].key = keys[i][k];
			requests[i][k].next_free = shard[i].free_request;
			shard[i].free_request = &requests[i][k];
		}
	}
	return 0;
}

static unsigned asked_for(const char *key)
{
	return (unsigned)(reddn_shard_of(&whole, key, strlen(key)) - shard);
}

/* A request for this key has come to shard @i, whose table does not have it */
static struct reddn_request *stray(unsigned i, const char *key, uint64_t cookie)
{
	struct reddn_request *q = shard[i].free_request;

	assert_non_null(q);
	shard[i].free_request = q->next_free;
	q->cookie = cookie;
	q->len = (uint32_t)strlen(key);
	memcpy(q->key, key, q->len);
	q->due = UINT64_MAX;
	shard[i].busy++;
	reddn_queue_add(&shard[i].elsewhere, q);
	whole.strays = true;
	return q;
}

/* The next one that shard @i is to send */
static void expect_sent(unsigned i, const char *key, uint64_t cookie)
{
	struct reddn_request *q = reddn_queue_take(&shard[i].retry);

	assert_non_null(q);
	assert_int_equal(q->cookie, cookie);
	assert_int_equal(q->len, strlen(key));
	assert_memory_equal(q->key, key, q->len);
	assert_true((void *)q->key >= (void *)keys[i] && (void *)q->key < (void *)keys[i + 1]);
}

/* Slots of Redis 7.0: "b" 3300, "foo" 12182, "bar" 5061, "d" 11298, "a" 15495 */
static void test_choice(void **state)
{
	assert_int_equal(asked_for("b"), 0);
	assert_int_equal(asked_for("bar"), 1);
	assert_int_equal(asked_for("foo"), 2);
	assert_int_equal(asked_for("x{foo}y"), 2);
	/* of two, one that has a session */
	shard[1].slots = shard[0].slots;
	shard[0].state = REDDN_AWAY;
	assert_int_equal(asked_for("b"), 1);
	shard[1].state = REDDN_AWAY;
	assert_int_equal(asked_for("b"), 0);
	/* nobody: one that has a session, or has not stated anything yet */
	assert_int_equal(asked_for("bar"), 2);
	shard[0].slots = 0;
	assert_int_equal(asked_for("bar"), 0);
	shard[0].broken = -EACCES;
	assert_int_equal(asked_for("bar"), 2);
}

static void test_route(void **state)
{
	stray(0, "foo", 1);
	stray(0, "bar", 2);
	stray(1, "bar", 3); /* it has it by now */
	assert_false(reddn_shards_route(&whole));
	assert_false(whole.strays);
	expect_sent(2, "foo", 1);
	expect_sent(1, "bar", 2);
	expect_sent(1, "bar", 3);
	assert_int_equal(shard[0].busy, 0);
	assert_int_equal(shard[1].busy, 2);
	assert_true(shard[1].exceptional && shard[2].exceptional);
}

/* From one to the next that may have it, with pauses, of which the descriptor reports the end. */
static void test_nobody(void **state)
{
	struct reddn_request *q = stray(0, "a", 1);

	shard[1].state = REDDN_AWAY;
	reddn_shards_route(&whole);
	assert_true(whole.strays);
	assert_ptr_equal(shard[0].elsewhere.first, q);
	assert_int_equal(whole.pause_until, UINT64_MAX);
	q->due = UINT64_MAX - 1;
	reddn_shards_route(&whole);
	assert_int_equal(whole.pause_until, q->due);
	q->due = 0;
	reddn_shards_route(&whole);
	assert_false(whole.strays);
	assert_int_equal(whole.pause_until, UINT64_MAX);
	expect_sent(2, "a", 1);
	/* somebody has got it meanwhile */
	stray(2, "a", 2);
	shard[1].slots = redis_slots(15000, 1000);
	reddn_shards_route(&whole);
	expect_sent(1, "a", 2);
}

/* All requests of each are for the next one, and no free one is left: none of them waits for ever. */
static void test_full(void **state)
{
	static const char *const key[SHARDS] = {"b", "bar", "foo"};

	for (unsigned i = 0; i < SHARDS; i++)
		for (unsigned k = 0; k < REQUESTS; k++)
			stray(i, key[(i + 1) % SHARDS], i * REQUESTS + k);
	for (unsigned turns = 0; whole.strays; turns++) {
		assert_true(turns < SHARDS * REQUESTS);
		reddn_shards_route(&whole);
		assert_true(
			!whole.strays || whole.pause_until <= clock_ns()); /* the descriptor is readable */
	}
	for (unsigned i = 0; i < SHARDS; i++) {
		unsigned n = 0;

		for (struct reddn_request *q; (q = reddn_queue_take(&shard[i].retry)); n++) {
			assert_int_equal(q->len, strlen(key[i]));
			assert_memory_equal(q->key, key[i], q->len);
			assert_int_equal(q->cookie / REQUESTS, (i + SHARDS - 1) % SHARDS);
		}
		assert_int_equal(n, REQUESTS);
		assert_int_equal(shard[i].busy, REQUESTS);
		assert_null(shard[i].free_request);
	}
}

/* What the other one cannot take ends. */
static void test_refused(void **state)
{
	stray(0, "bar", 1);
	stray(0, "x{foo}y", 2);
	shard[1].broken = -EACCES;
	shard[2].session.geo.max_key = 3;
	assert_true(reddn_shards_route(&whole));
	assert_false(whole.strays);
	assert_int_equal(shard[0].ended.first->status, -EACCES);
	assert_int_equal(shard[0].ended.last->status, -EMSGSIZE);
	assert_int_equal(shard[0].busy, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_choice, begin),
		cmocka_unit_test_setup(test_route, begin),
		cmocka_unit_test_setup(test_nobody, begin),
		cmocka_unit_test_setup(test_full, begin),
		cmocka_unit_test_setup(test_refused, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
