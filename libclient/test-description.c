/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "protocol/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { PROGRAM = 7, REPLY_MAX = 1024 };

static void test_read(void **state)
{
	struct reddn_description d;
	const char *text =
		"arg probe[1].at offset 4 buckets;arg key u48;weather fine today;"
		"reply hit 0 u8;reply count 8 le64;reply at 16 be40 and more;reply key 24 bytes 12;"
		"reply heap 64 max 960;";
	static const struct reddn_reply_field want[] = {{"hit", REDDN_REPLY_BE, 0, 1},
		{"count", REDDN_REPLY_LE, 8, 8}, {"at", REDDN_REPLY_BE, 16, 5},
		{"key", REDDN_REPLY_BYTES, 24, 12}, {"heap", REDDN_REPLY_UP_TO, 64, 960}};

	assert_int_equal(reddn_description_read(&d, strdup(text), PROGRAM, REPLY_MAX), 0);
	assert_int_equal(d.nargs, 2);
	assert_string_equal(d.arg[0], "probe[1].at");
	assert_string_equal(d.arg[1], "key");
	assert_int_equal(d.nfields, 5);
	for (unsigned i = 0; i < d.nfields; i++) {
		assert_string_equal(d.field[i].name, want[i].name);
		assert_int_equal(d.field[i].kind, want[i].kind);
		assert_int_equal(d.field[i].offset, want[i].offset);
		assert_int_equal(d.field[i].bytes, want[i].bytes);
	}
	reddn_description_deinit(&d);
	assert_int_equal(reddn_description_read(&d, strdup(""), PROGRAM, REPLY_MAX), 0);
	assert_true(d.text && !d.nargs && !d.nfields);
	/* Another server of the program may have shorter replies, where its fields are not */
	assert_true(reddn_description_is_of(&d, PROGRAM, REPLY_MAX));
	assert_false(reddn_description_is_of(&d, PROGRAM + 1, REPLY_MAX));
	assert_false(reddn_description_is_of(&d, PROGRAM, REPLY_MAX - 1));
	reddn_description_deinit(&d);
	assert_false(reddn_description_is_of(&d, PROGRAM, REPLY_MAX));
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {"arg", "arg ", "arg a\x1b[2J u8", "reply", "reply hit",
		"reply hit x u8", "reply hit -1 u8", "reply hit 0", "reply hit 0 u16", "reply hit 0 be0",
		"reply hit 0 be12", "reply hit 0 le72", "reply hit 0 beef", "reply hit 0 bytes",
		"reply hit 0 bytes 0", "reply hit 0 max x", "reply hit 1024 u8", "reply hit 1020 le64",
		"reply hit 64 max 961", "reply hit 4294967295 be64", "reply hit 0 bytes 4294967296",
		"reply HIT 0 u8", "reply  0 u8"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct reddn_description d;

		if (reddn_description_read(&d, strdup(wrong[i]), PROGRAM, REPLY_MAX) != -EPROTO)
			fail_msg("\"%s\" is accepted", wrong[i]);
		assert_null(d.text);
	}
}

/* A server that gives another length with each part: nothing goes beyond the room */
static void test_parts(void **state)
{
	char *text = calloc(1, REDDN_WIRE_DESCRIPTION_MAX + 1);
	size_t len = 0;

	assert_non_null(text);
	assert_true(reddn_description_add(text, &len, 8, "arg "));
	assert_true(reddn_description_add(text, &len, 8, "a u8"));
	assert_string_equal(text, "arg a u8");
	assert_true(reddn_description_add(text, &len, 8, ""));
	assert_false(reddn_description_add(text, &len, 8, ";"));
	assert_false(reddn_description_add(text, &len, 7, ""));
	assert_false(reddn_description_add(text, &len, 0, "behind the end"));
	assert_false(reddn_description_add(text, &len, 9, ""));
	assert_false(reddn_description_add(text, &len, REDDN_WIRE_DESCRIPTION_MAX + 1, ";"));
	while (len < REDDN_WIRE_DESCRIPTION_MAX)
		assert_true(reddn_description_add(text, &len, REDDN_WIRE_DESCRIPTION_MAX, ";"));
	assert_false(reddn_description_add(text, &len, REDDN_WIRE_DESCRIPTION_MAX, ";"));
	assert_int_equal(strlen(text), REDDN_WIRE_DESCRIPTION_MAX);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_wrong), cmocka_unit_test(test_parts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
