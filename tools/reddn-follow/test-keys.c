/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/keys.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct keys keys;

static int begin(void **state)
{
	keys_init(&keys);
	keys_expire(&keys, 1000000);
	return 0;
}

static int end(void **state)
{
	keys_deinit(&keys);
	return 0;
}

static struct key *ask(const char *name)
{
	struct key *k = keys_ask(&keys);

	assert_non_null(k);
	assert_int_equal(k->len, strlen(name));
	assert_memory_equal(k->bytes, name, k->len);
	return k;
}

static void mark(const char *name)
{
	keys_mark(&keys, name, strlen(name));
}

static void test_queue(void **state)
{
	struct key *k;

	mark("a");
	mark("");
	mark("a"); /* once, however often it changes */
	k = ask("a");
	mark("b");
	mark("a"); /* while it is asked for: again, behind the others */
	mark("a");
	keys_answer(&keys, ask(""), false, 0);
	keys_answer(&keys, k, false, 0);
	keys_answer(&keys, ask("b"), false, 0);
	keys_answer(&keys, ask("a"), false, 0);
	assert_null(keys_ask(&keys));
	assert_null(keys.all);
	assert_int_equal(keys.queued, 4);
	assert_int_equal(keys.answered, 4);
	assert_int_equal(keys.queue_bytes, 0);
}

static void test_absent(void **state)
{
	for (int i = 0; i < 2; i++) {
		mark("a");
		keys_answer(&keys, ask("a"), true, 0);
		assert_int_equal(keys.nabsent, 1);
	}
	mark("b");
	keys_forget_questions(&keys);
	assert_int_equal(HASH_COUNT(keys.all), 1);
	keys_mark_absent(&keys);
	keys_answer(&keys, ask("a"), false, 0);
	assert_int_equal(keys.nabsent, 0);
	assert_null(keys.all);
}

/* When it is marked, if time goes on in steps: never early, and not later than a step and a tick */
static void test_due(void **state)
{
	static const unsigned steps[] = {1, 7, 10, 999, 700000, 10000000};
	uint64_t now = 1000000;

	for (unsigned s = 0; s < 6; s++)
		for (unsigned after = 1; after < 2000000; after = after * 3 + 1) {
			uint64_t due = now + after;

			mark("a");
			keys_answer(&keys, ask("a"), false, now + 3);
			mark("a"); /* another one takes the place of that */
			keys_answer(&keys, ask("a"), false, due);
			if (after / steps[s] > 3000)
				now = due - 20 * steps[s];
			while (!keys.queue) {
				int pause = keys_pause(&keys, now, 500);

				assert_true(pause > 0 && pause <= 500);
				assert_true(now < due + steps[s] + 20);
				now += steps[s];
				keys_expire(&keys, now);
			}
			assert_true(now >= due);
			keys_answer(&keys, ask("a"), false, 0);
			assert_int_equal(keys.ndue, 0);
			assert_null(keys.all);
		}
}

/* Time passes by keys_pause() */
static void test_pause(void **state)
{
	uint64_t now = 1000000;
	char name[16];
	unsigned turns = 0;

	assert_int_equal(keys_pause(&keys, now, 500), 500);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		mark(name);
		keys_answer(&keys, keys_ask(&keys), false, now + 3000 + (uint64_t)i % 5);
	}
	while (!keys.queue) {
		now += (uint64_t)keys_pause(&keys, now, 500);
		keys_expire(&keys, now);
		turns++;
	}
	assert_in_range(now, 1003004, 1003024);
	assert_in_range(turns, 6, 10);
	assert_int_equal(keys.nqueued, 1000);
	keys_forget_questions(&keys);
	assert_null(keys.all);
}

/* Another server's, which comes later */
static void test_another(void **state)
{
	struct keys another;

	mark("a");
	keys_init(&another);
	mark("a");
	assert_int_equal(HASH_COUNT(keys.all), 1);
	keys_deinit(&another);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_queue, begin, end),
		cmocka_unit_test_setup_teardown(test_absent, begin, end),
		cmocka_unit_test_setup_teardown(test_due, begin, end),
		cmocka_unit_test_setup_teardown(test_pause, begin, end),
		cmocka_unit_test_setup_teardown(test_another, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
