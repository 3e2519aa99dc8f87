/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/question.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void test_parse(void **state)
{
	struct reddn_wire_query why = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = REDDN_REQ_END_REASON,
		.slot_addr = htobe64(0x5000),
		.slot_rkey = htobe32(77),
		.session = htobe64(5)};
	struct question q;

	assert_true(question_parse(&why, sizeof(why), &q));
	assert_true(q.of.session == 5 && q.of.slot_addr == 0x5000 && q.of.slot_rkey == 77 && !q.describe);
	assert_false(question_parse(&why, sizeof(why) - 1, &q));
	why.flags = 0;
	assert_false(question_parse(&why, sizeof(why), &q));
	why.flags = REDDN_REQ_END_REASON | REDDN_REQ_SLOT_GUESS;
	assert_false(question_parse(&why, sizeof(why), &q));
	why.flags = REDDN_REQ_DESCRIBE;
	why.from = htobe32(131);
	assert_true(question_parse(&why, sizeof(why), &q));
	assert_true(q.of.session == 5 && q.describe && q.from == 131);
	why.version++;
	assert_false(question_parse(&why, sizeof(why), &q));
}

/* The parts that a client gets add up to the whole, which ends where an answer has no more text */
static void test_parts(void **state)
{
	char whole[1000] = "", got[1200] = "";
	struct reddn_wire_rej rej;
	unsigned parts = 0;

	for (unsigned i = 0; i < 30; i++)
		snprintf(whole + strlen(whole), sizeof(whole) - strlen(whole), "reply field%u %u le64;", i,
			8 * i);
	do {
		question_describe(whole, (uint32_t)strlen(got), &rej);
		assert_int_equal(rej.reason, REDDN_REJ_DESCRIBED);
		assert_int_equal(be32toh(rej.detail), strlen(whole));
		assert_non_null(memchr(rej.text, '\0', sizeof(rej.text)));
		strcat(got, rej.text);
		parts++;
	} while (strlen(got) < strlen(whole));
	assert_string_equal(got, whole);
	assert_int_equal(parts, (strlen(whole) + sizeof(rej.text) - 2) / (sizeof(rej.text) - 1));
	question_describe(whole, UINT32_MAX, &rej);
	assert_string_equal(rej.text, "");
	question_describe("", 0, &rej);
	assert_true(*rej.text == '\0' && rej.detail == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse), cmocka_unit_test(test_parts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
