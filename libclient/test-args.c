/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/args.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static const struct reddn_wire_rep good = {
	.nargs = 3,
	.nfields = 5,
	.arg = {{REDDN_ARG_NUMBER, 7}, {REDDN_ARG_OFFSET, 4}, {REDDN_ARG_BYTES, 5}},
	.field =
		{
			{.arg = 0, .first = 0, .len = 7},
			{.arg = 1, .first = 0, .len = 4},
			{.arg = 2, .first = 1, .len = 3},
			{.arg = 0, .flags = REDDN_FIELD_REVERSED, .first = 4, .len = 3},
			{.arg = 1, .flags = REDDN_FIELD_INVERTED, .first = 2, .len = 2},
		},
};

static void test_build(void **state)
{
	static const uint8_t expected[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0, 0, 0, 0x10, 'e', 'l',
		'l', 0x07, 0x06, 0x05, 0xff, 0xef};
	const struct reddn_arg args[] = {{.number = 0x01020304050607}, {.number = 0x10}, {.bytes = "hello"}};
	struct reddn_request_format f;
	uint8_t out[sizeof(expected) + 1];

	memset(out, 0xa5, sizeof(out));
	assert_null(reddn_format_read(&f, &good, sizeof(expected)));
	assert_int_equal(reddn_format_encode(&f, args, 3, sizeof(expected), out), 0);
	assert_memory_equal(out, expected, sizeof(expected));
	assert_int_equal(out[sizeof(expected)], 0xa5);
}

static void test_wrong_values(void **state)
{
	const struct reddn_arg args[] = {
		{.number = UINT64_MAX >> 8}, {.number = UINT32_MAX}, {.bytes = "hello"}};
	struct reddn_arg bad[3];
	struct reddn_request_format f;
	uint8_t out[19];

	assert_null(reddn_format_read(&f, &good, sizeof(out)));
	assert_int_equal(reddn_format_encode(&f, args, 3, sizeof(out), out), 0);
	assert_int_equal(reddn_format_encode(&f, args, 2, sizeof(out), out), -EINVAL);
	for (unsigned i = 0; i < 5; i++) {
		memcpy(bad, args, sizeof(bad));
		if (i < 2)
			bad[i].number++;
		else if (i < 4)
			bad[i - 2].bytes = "xxxxxxxx";
		else
			bad[2].bytes = NULL;
		assert_int_equal(reddn_format_encode(&f, bad, 3, sizeof(out), out), -ERANGE);
	}
}

static void test_eight_bytes(void **state)
{
	static const uint8_t not_one[8] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	const struct reddn_wire_rep rep = {.nargs = 1,
		.nfields = 1,
		.arg = {{REDDN_ARG_NUMBER, 8}},
		.field = {{.arg = 0,
			.flags = REDDN_FIELD_INVERTED | REDDN_FIELD_REVERSED,
			.first = 0,
			.len = 8}}};
	struct reddn_request_format f;
	uint8_t out[8];

	assert_null(reddn_format_read(&f, &rep, 8));
	assert_int_equal(reddn_format_encode(&f, &(struct reddn_arg){.number = 1}, 1, 8, out), 0);
	assert_memory_equal(out, not_one, 8);
	assert_int_equal(
		reddn_format_encode(&f, &(struct reddn_arg){.number = UINT64_MAX - 1}, 1, 8, out), 0);
	assert_int_equal(out[0], 1);
	assert_int_equal(out[7], 0);
}

/* What is for one key is there once for each */
static void test_several_keys(void **state)
{
	static const uint8_t expected[] = {0, 1, 0x34, 0x12, 0, 2, 0x78, 0x56, 0, 3, 0xbc, 0x9a};
	const struct reddn_arg args[] = {{.number = 1}, {.number = 0x1234}, {.number = 2}, {.number = 0x5678},
		{.number = 3}, {.number = 0x9abc}};
	struct reddn_arg bad[6];
	struct reddn_wire_rep rep = {.table.keys = 3,
		.nargs = 2,
		.nfields = 2,
		.arg = {{REDDN_ARG_OFFSET, 2}, {REDDN_ARG_NUMBER, 2}},
		.field = {{.arg = 0, .len = 2}, {.arg = 1, .flags = REDDN_FIELD_REVERSED, .len = 2}}};
	struct reddn_request_format f;
	uint8_t out[sizeof(expected)];

	assert_null(reddn_format_read(&f, &rep, sizeof(out)));
	assert_int_equal(reddn_format_encode(&f, args, 6, sizeof(out), out), 0);
	assert_memory_equal(out, expected, sizeof(out));
	assert_int_equal(reddn_format_encode(&f, args, 2, sizeof(out), out), -EINVAL);
	memcpy(bad, args, sizeof(bad));
	bad[5].number = 0x10000;
	assert_int_equal(reddn_format_encode(&f, bad, 6, sizeof(out), out), -ERANGE);
	assert_non_null(reddn_format_read(&f, &rep, 4));
	rep.table.keys = 2;
	assert_non_null(reddn_format_read(&f, &rep, sizeof(out)));
}

/* A request may be empty, or one that the server does not explain */
static void test_no_fields(void **state)
{
	const struct reddn_wire_rep rep = {0};
	struct reddn_request_format f;

	assert_null(reddn_format_read(&f, &rep, 0));
	assert_int_equal(reddn_format_encode(&f, NULL, 0, 0, NULL), 0);
	assert_null(reddn_format_read(&f, &rep, 8));
	assert_int_equal(reddn_format_encode(&f, NULL, 0, 8, NULL), -EINVAL);
}

/* Each byte that a server may have wrong */
static void test_wrong_forms(void **state)
{
	struct reddn_wire_rep rep;
	struct reddn_request_format f;

	assert_non_null(reddn_format_read(&f, &good, 18));
	assert_non_null(reddn_format_read(&f, &good, 20));
#define WRONG(change)                                                                                        \
	do {                                                                                                 \
		rep = good;                                                                                  \
		change;                                                                                      \
		assert_non_null(reddn_format_read(&f, &rep, 19));                                            \
	} while (0)
	WRONG(rep.nargs = REDDN_WIRE_ARGS + 1);
	WRONG(rep.nfields = REDDN_WIRE_FIELDS + 1);
	WRONG(rep.nargs = 2);
	WRONG(rep.nfields = 4);
	WRONG(rep.arg[0].kind = 3);
	WRONG(rep.arg[0].bytes = 9);
	WRONG(rep.arg[1].bytes = 0);
	WRONG(rep.field[0].len = 8);
	WRONG(rep.field[1].len = 0);
	WRONG(rep.field[1].first = 1);
	WRONG(rep.field[2].first = 255);
	WRONG(rep.field[2].flags = REDDN_FIELD_INVERTED);
	WRONG(rep.field[3].flags = 4);
	WRONG(rep.field[3].arg = 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_eight_bytes),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_no_fields),
		cmocka_unit_test(test_wrong_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
