/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/redis-nodes.h"

#include <string.h>

#include "tests/lib/cmocka.h"

/* As CLUSTER KEYSLOT of Redis 7.0 answers */
static void test_slot(void **state)
{
	static const struct {
		const char *key;
		unsigned slot;
	} keys[] = {{"123456789", 12739}, {"foo", 12182}, {"{foo}", 12182}, {"x{foo}y{bar}", 12182}, {"", 0},
		{"{}foo", 9500}, {"foo{}", 5542}, {"{foo", 13308}, {"}foo{", 8453}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_int_equal(redis_slot(keys[i].key, strlen(keys[i].key)), keys[i].slot);
}

static void test_range(void **state)
{
	const uint64_t some = redis_slots(100, 101);

	assert_false(redis_slots_have(some, 99));
	assert_true(redis_slots_have(some, 100));
	assert_true(redis_slots_have(some, 200));
	assert_false(redis_slots_have(some, 201));
	assert_true(redis_slots_have(REDIS_SLOTS_ALL, 0));
	assert_true(redis_slots_have(REDIS_SLOTS_ALL, REDIS_SLOTS - 1));
	assert_false(redis_slots_have(redis_slots(7, 0), 7));
	assert_int_equal(redis_slots_first(some), 100);
	assert_int_equal(redis_slots_count(some), 101);
}

static const char a_says[] =
	"aa 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-99 200 [99->-bb] [300-<-bb]\n"
	"cc ::1:7002@17002,host slave aa 0 0 1 connected\n"
	"bb 127.0.0.1:7001@17001 master,fail? - 0 0 2 connected 100-199 201-16383\n"
	"dd :0@0 master,noaddr - 0 0 3 disconnected\n";
static const char b_says[] =
	"bb 10.0.0.2:7001@17001 myself,master - 0 0 2 connected 100-199 201-16383 [99-<-aa]\n"
	"aa 127.0.0.1:7000@17000 master - 0 0 1 connected 0-99 200\n";

static void test_nodes(void **state)
{
	const char *text = a_says;
	struct redis_master m;
	uint8_t owner[REDIS_SLOTS] = {0};
	char id[48];
	bool moves;

	assert_true(redis_nodes_next(&text, &m));
	assert_string_equal(m.id, "aa");
	assert_string_equal(m.host, "127.0.0.1");
	assert_int_equal(m.port, 7000);
	assert_int_equal(m.epoch, 1);
	assert_false(m.fails);
	assert_int_equal(redis_nodes_assign(&m, redis_slots(0, 50), NULL, 1), 50);
	assert_int_equal(redis_nodes_assign(&m, REDIS_SLOTS_ALL, owner, 1), 101);
	assert_true(redis_nodes_next(&text, &m));
	assert_string_equal(m.id, "bb");
	assert_true(m.fails);
	assert_int_equal(
		redis_nodes_assign(&m, redis_slots(0, REDIS_SLOTS - 1), owner, 2), REDIS_SLOTS - 102);
	assert_false(redis_nodes_next(&text, &m));
	assert_int_equal(owner[99], 1);
	assert_int_equal(owner[100], 2);
	assert_int_equal(owner[200], 1);
	assert_int_equal(owner[REDIS_SLOTS - 2], 2);
	assert_int_equal(owner[REDIS_SLOTS - 1], 0);
	assert_true(redis_nodes_myself(a_says, REDIS_SLOTS_ALL, id, &moves));
	assert_string_equal(id, "aa");
	assert_true(moves);
	assert_true(redis_nodes_myself(a_says, redis_slots(300, 1), id, &moves) && moves);
	assert_true(redis_nodes_myself(a_says, redis_slots(100, 200), id, &moves) && !moves);
	assert_false(redis_nodes_myself(
		"cc ::1:7002@17002 slave aa 0 0 1 connected\n", REDIS_SLOTS_ALL, id, &moves));
}

/* In any order, with any addresses, and without what moves */
static void test_view(void **state)
{
	assert_int_equal(redis_nodes_view(a_says), redis_nodes_view(b_says));
	assert_int_not_equal(redis_nodes_view(a_says), redis_nodes_view(strchr(b_says, '\n') + 1));
	assert_int_not_equal(redis_nodes_view(b_says),
		redis_nodes_view("bb h:7001@1 master - 0 0 2 connected 100-199 201-16382\n"
				 "aa 127.0.0.1:7000@17000 master - 0 0 1 connected 0-99 200\n"));
}

/* As tests/follow/dropin.py has it from Python */
static void test_origin(void **state)
{
	static const char *const prefixes[] = {"user:"};
	static const char moved[] = "aa h:1@1 master - 0 0 1 connected 0-98 200\n"
				    "bb h:2@2 master - 0 0 2 connected 99-199 201-16383\n",
			  again[] = "aa h:1@1 master - 0 0 3 connected 0-99 200\n"
				    "bb h:2@2 master - 0 0 2 connected 100-199 201-16383\n";
	uint64_t origin = redis_nodes_origin(a_says, NULL, 0);

	assert_true(origin == 0x32a269a05cfed05c);
	assert_true(origin == redis_nodes_origin(b_says, NULL, 0));
	assert_true(origin != redis_nodes_origin(a_says, prefixes, 1));
	assert_true(origin != redis_nodes_origin(moved, NULL, 0));
	assert_true(origin != redis_nodes_origin(again, NULL, 0));
	assert_true(redis_nodes_view(a_says) != redis_nodes_view(again));
	assert_int_equal(redis_nodes_origin("dd :0@0 master - 0 0 3 connected\n", prefixes, 1), 0);
	assert_int_equal(redis_nodes_version(a_says), 101 + 2 * (REDIS_SLOTS - 101));
	assert_int_equal(redis_nodes_version(moved), redis_nodes_version(a_says) + 1);
	assert_int_equal(redis_nodes_version(again), redis_nodes_version(a_says) + 2 * 101);
}

/* Half of the masters is not most; a flag that only has the word in it does not count, nor a replica. */
static void test_ruled(void **state)
{
	assert_false(redis_nodes_are_ruled(a_says));
	assert_true(redis_nodes_are_ruled(b_says));
	assert_true(redis_nodes_are_ruled("aa h:1@1 myself,master - 0 0 1 connected 0-99\n"
					  "bb h:2@2 master,fail - 0 0 2 connected 100-199\n"
					  "cc h:3@3 master,nofailover - 0 0 3 connected 200-16383\n"
					  "dd h:4@4 slave,fail aa 0 0 1 connected\n"));
	assert_false(redis_nodes_are_ruled(""));
}

/* Of a server that is none */
static void test_wrong(void **state)
{
	static const char *const texts[] = {"", "\n\n", "x", "a b master", "a b master d e f g h",
		"a b master d e f g h ", "a b master d e f g h x-y",
		"a :b@ master d e f g h 99999-0 16384 5-", "a h:1@ master d e f g h [1->-"};
	uint8_t owner[REDIS_SLOTS];
	struct redis_master m;
	char id[48];
	bool moves;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const char *text = texts[i];

		while (redis_nodes_next(&text, &m))
			assert_true(redis_nodes_assign(&m, REDIS_SLOTS_ALL, owner, 1) <= 1);
		redis_nodes_view(texts[i]);
		redis_nodes_origin(texts[i], NULL, 0);
		redis_nodes_version(texts[i]);
		redis_nodes_are_ruled(texts[i]);
		redis_nodes_myself(texts[i], REDIS_SLOTS_ALL, id, &moves);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_origin),
		cmocka_unit_test(test_ruled),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
