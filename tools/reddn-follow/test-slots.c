/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* As CLUSTER KEYSLOT of Redis 7.0 answers */
static void test_slot(void **state)
{
	static const struct {
		const char *key;
		unsigned slot;
	} keys[] = {{"123456789", 12739}, {"foo", 12182}, {"{foo}", 12182}, {"x{foo}y{bar}", 12182}, {"", 0},
		{"{}foo", 9500}, {"foo{}", 5542}, {"{foo", 13308}, {"}foo{", 8453}};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_int_equal(slot_of(keys[i].key, strlen(keys[i].key)), keys[i].slot);
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
	struct slots_master m;
	uint8_t owner[SLOTS] = {0};
	char id[48];
	bool moves;

	(void)state;
	assert_true(slots_next(&text, &m));
	assert_string_equal(m.id, "aa");
	assert_string_equal(m.host, "127.0.0.1");
	assert_int_equal(m.port, 7000);
	assert_int_equal(slots_assign(&m, owner, 1), 101);
	assert_true(slots_next(&text, &m));
	assert_string_equal(m.id, "bb");
	assert_int_equal(slots_assign(&m, owner, 2), SLOTS - 101);
	assert_false(slots_next(&text, &m));
	assert_int_equal(owner[99], 1);
	assert_int_equal(owner[100], 2);
	assert_int_equal(owner[200], 1);
	assert_int_equal(owner[SLOTS - 1], 2);
	assert_true(slots_myself(a_says, id, &moves));
	assert_string_equal(id, "aa");
	assert_true(moves);
	assert_false(slots_myself("cc ::1:7002@17002 slave aa 0 0 1 connected\n", id, &moves));
}

/* In any order, with any addresses, and without what moves */
static void test_view(void **state)
{
	(void)state;
	assert_int_equal(slots_view(a_says), slots_view(b_says));
	assert_int_not_equal(slots_view(a_says), slots_view(strchr(b_says, '\n') + 1));
	assert_int_not_equal(slots_view(b_says),
		slots_view("bb h:7001@1 master - 0 0 2 connected 100-199 201-16382\n"
			   "aa 127.0.0.1:7000@17000 master - 0 0 1 connected 0-99 200\n"));
}

/* Of a server that is none */
static void test_wrong(void **state)
{
	static const char *const texts[] = {"", "\n\n", "x", "a b master", "a b master d e f g h",
		"a b master d e f g h ", "a b master d e f g h x-y",
		"a :b@ master d e f g h 99999-0 16384 5-", "a h:1@ master d e f g h [1->-"};
	uint8_t owner[SLOTS];
	struct slots_master m;
	char id[48];
	bool moves;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const char *text = texts[i];

		while (slots_next(&text, &m))
			assert_true(slots_assign(&m, owner, 1) <= 1);
		slots_view(texts[i]);
		slots_myself(texts[i], id, &moves);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
