/* SPDX-License-Identifier: BSD-2-Clause */
/* What a refusal means to the caller. */
#include "libclient/handshake.h"

#include "libclient/put.h"
#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static void test_errors(void **state)
{
	static const struct {
		uint8_t reason;
		int error; /* as reddn_connect documents it */
	} of[] = {
		{REDDN_REJ_VERSION, -EPROTONOSUPPORT},
		{REDDN_REJ_MALFORMED, -EPROTO},
		{REDDN_REJ_OFFLOAD, -ENOENT},
		{REDDN_REJ_DEPTH, -ERANGE},
		{REDDN_REJ_SLOT, -EMSGSIZE},
		{REDDN_REJ_RESOURCES, -EBUSY},
		{REDDN_REJ_INTERNAL, -EREMOTEIO},
		{REDDN_REJ_SHUTDOWN, -ESHUTDOWN},
		{REDDN_REJ_ACCESS, -EACCES},
		{REDDN_REJ_QUOTA, -EDQUOT},
		{REDDN_REJ_BANNED, -EACCES},
		{REDDN_REJ_UNKNOWN, -ECONNRESET},
		/* these answer no REQ of a session */
		{REDDN_REJ_ENDED, -EPROTO},
		{REDDN_REJ_NOT_ENDED, -EPROTO},
		{REDDN_REJ_DESCRIBED, -EPROTO},
		{REDDN_REJ_DESCRIBED + 1, -EPROTO},
		{UINT8_MAX, -EPROTO},
	};

	for (unsigned i = 0; i < COUNT(of); i++)
		assert_int_equal(
			reddn_rej_error(&(struct reddn_wire_rej){.reason = of[i].reason}), of[i].error);
}

/* The text comes from outside: it ends, and does nothing to a terminal. */
static void test_text(void **state)
{
	struct reddn_wire_rej sent = {.magic = htobe32(REDDN_WIRE_MAGIC)}, got;
	struct rdma_conn_param param = {.private_data = &sent, .private_data_len = sizeof(sent)};

	memset(sent.text, '\033', sizeof(sent.text));
	assert_true(reddn_read_rej(&got, &param));
	assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
	assert_int_equal(strspn(got.text, "?"), sizeof(got.text) - 1);
	sent.magic = 0;
	assert_false(reddn_read_rej(&got, &param));
	param.private_data_len--;
	sent.magic = htobe32(REDDN_WIRE_MAGIC);
	assert_false(reddn_read_rej(&got, &param));
	param.private_data = NULL;
	assert_false(reddn_read_rej(&got, &param));
}

static bool wants_into;

/* A REP of an offload that puts, and the session that it makes; @change it before. Returns the result. */
static int read_rep(struct reddn_session *s, void (*change)(struct reddn_wire_rep *))
{
	struct reddn_wire_rep rep = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.shape = REDDN_SHAPE_PUT,
		.depth = htobe16(4),
		.request_len = htobe32(9),
		.reply_max = htobe32(32),
		.table = {.buckets = htobe64(4096),
			.max_key = htobe32(100),
			.max_value = htobe32(1000),
			.offset_len = 3,
			.probes = 2,
			.header = 16,
			.payload_max = htobe32(7 + 1000)}};
	const struct rdma_conn_param p = {.private_data = &rep, .private_data_len = sizeof(rep)};
	char err[128];

	*s = (struct reddn_session){.depth = 4, .into = wants_into, .info.slot_size = 256};
	change(&rep);
	return reddn_read_rep(s, &p, err, sizeof(err));
}

static void as_it_is(struct reddn_wire_rep *rep)
{
}

static void no_header(struct reddn_wire_rep *rep)
{
	rep->table.header = 0;
}

static void short_header(struct reddn_wire_rep *rep)
{
	rep->table.header = 7;
}

static void short_reply(struct reddn_wire_rep *rep)
{
	rep->reply_max = htobe32(31);
}

static void two_buckets(struct reddn_wire_rep *rep)
{
	rep->request_len = htobe32(18);
}

static void huge_record(struct reddn_wire_rep *rep)
{
	rep->table.payload_max = htobe32(7 + REDDN_RECORD_LIMIT + 1);
}

static void no_room(struct reddn_wire_rep *rep)
{
	rep->table.payload_max = htobe32(7 + 15);
}

static void short_records(struct reddn_wire_rep *rep)
{
	rep->table.payload_max = htobe32(7 + 20);
}

static void no_zeroes(struct reddn_wire_rep *rep)
{
	rep->table.payload_max = htobe32(6);
}

static void test_put(void **state)
{
	static void (*const wrong[])(struct reddn_wire_rep *) = {
		no_header, short_header, short_reply, two_buckets, huge_record, no_room, no_zeroes};
	struct reddn_session s;

	assert_int_equal(read_rep(&s, as_it_is), 0);
	assert_int_equal(s.info.shape, REDDN_PUT);
	assert_int_equal(s.info.record_max, 1000);
	assert_int_equal(s.info.max_key, 100);
	assert_int_equal(s.geo.room, 1000);
	assert_int_equal(s.key_room, REDDN_PUT_RECORD + 1000);
	/* for a raw request, and for the key of a delete */
	assert_int_equal(read_rep(&s, short_records), 0);
	assert_int_equal(s.key_room, REDDN_KEY_ROOM);
	for (unsigned i = 0; i < COUNT(wrong); i++)
		assert_int_equal(read_rep(&s, wrong[i]), -EPROTO);
}

static void conditional(struct reddn_wire_rep *rep)
{
	rep->shape = REDDN_SHAPE_PUT_IF;
	rep->request_len = htobe32(16);
	rep->reply_max = htobe32(44);
}

static void without_version(struct reddn_wire_rep *rep)
{
	conditional(rep);
	rep->request_len = htobe32(9);
}

static void short_version(struct reddn_wire_rep *rep)
{
	conditional(rep);
	rep->reply_max = htobe32(43);
}

static void test_put_if(void **state)
{
	static void (*const wrong[])(struct reddn_wire_rep *) = {without_version, short_version};
	struct reddn_session s;

	assert_int_equal(read_rep(&s, conditional), 0);
	assert_int_equal(s.info.shape, REDDN_PUT_IF);
	assert_int_equal(s.geo.room, 7 + 1000);
	for (unsigned i = 0; i < COUNT(wrong); i++)
		assert_int_equal(read_rep(&s, wrong[i]), -EPROTO);
}

static void exists(struct reddn_wire_rep *rep)
{
	rep->shape = REDDN_SHAPE_EXISTS;
	rep->request_len = htobe32(8 * 2 * 3);
	rep->reply_max = htobe32(64 + 8 * 20);
	rep->table.keys = 8;
}

static void exists_in_a_table(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->table.header = 0;
	rep->reply_max = htobe32(64 + 8 * 4);
}

static void exists_too_short(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->reply_max = htobe32(64 + 8 * 20 - 1);
}

static void exists_no_keys(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->table.keys = 0;
	rep->request_len = 0;
}

static void exists_many_keys(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->table.keys = REDDN_WIRE_KEYS + 1;
}

static void exists_other_request(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->request_len = htobe32(8 * 2 * 8);
}

static void exists_exact(struct reddn_wire_rep *rep)
{
	exists(rep);
	rep->request_len = htobe32(8 * 2 * 9);
	rep->reply_max = htobe32(64 + 8 * 16);
}

static void exists_exact_too_short(struct reddn_wire_rep *rep)
{
	exists_exact(rep);
	rep->reply_max = htobe32(64 + 8 * 16 - 1);
}

static void test_exists(void **state)
{
	static void (*const wrong[])(struct reddn_wire_rep *) = {exists_too_short, exists_no_keys,
		exists_many_keys, exists_other_request, exists_exact_too_short};
	struct reddn_session s;

	assert_int_equal(read_rep(&s, exists), 0);
	assert_int_equal(s.info.shape, REDDN_EXISTS);
	assert_int_equal(s.info.keys, 8);
	assert_int_equal(s.geo.part, 10);
	assert_int_equal(s.key_room, REDDN_KEY_ROOM);
	assert_int_equal(read_rep(&s, exists_in_a_table), 0);
	assert_int_equal(s.geo.part, 2);
	assert_int_equal(read_rep(&s, exists_exact), 0);
	assert_int_equal(s.geo.part, 8);
	for (unsigned i = 0; i < COUNT(wrong); i++)
		assert_int_equal(read_rep(&s, wrong[i]), -EPROTO);
}

static void into(struct reddn_wire_rep *rep)
{
	rep->shape = REDDN_SHAPE_INTO;
	rep->request_len = htobe32(2 * 9 + 4);
	rep->reply_max = 0;
}

static void into_long_key(struct reddn_wire_rep *rep)
{
	into(rep);
	rep->table.max_key = htobe32(5000);
}

static void into_no_number(struct reddn_wire_rep *rep)
{
	into(rep);
	rep->request_len = htobe32(2 * 9);
}

static void into_huge_value(struct reddn_wire_rep *rep)
{
	into(rep);
	rep->table.max_value = htobe32(UINT32_MAX);
}

/* Both ends must want it: receives were posted for the one or the other before the answer came */
static void test_into(void **state)
{
	static void (*const wrong[])(struct reddn_wire_rep *) = {
		into_long_key, into_no_number, into_huge_value};
	struct reddn_session s;

	assert_int_equal(read_rep(&s, into), -EOPNOTSUPP);
	wants_into = true;
	assert_int_equal(read_rep(&s, into), 0);
	assert_int_equal(s.info.shape, REDDN_TABLE_INTO);
	assert_true(s.sends);
	assert_int_equal(s.geo.room % 8, 0);
	assert_int_equal(read_rep(&s, as_it_is), -EOPNOTSUPP);
	for (unsigned i = 0; i < COUNT(wrong); i++)
		assert_int_equal(read_rep(&s, wrong[i]), -EPROTO);
	wants_into = false;
}

static void parts(struct reddn_wire_rep *rep)
{
	rep->shape = REDDN_SHAPE_TABLE;
	rep->request_len = htobe32(2 * 9);
	rep->reply_max = htobe32(256);
	rep->table.max_value = htobe32(256 - 64 - 16 - 16 - 100);
	memcpy(rep->table.part,
		(const uint8_t[]){4, 16, REDDN_WIRE_PART_EXISTS | 16, REDDN_WIRE_PART_EXISTS | 64},
		REDDN_WIRE_PARTS);
}

/* Of later servers */
static void unknown_parts(struct reddn_wire_rep *rep)
{
	parts(rep);
	rep->table.part[1] = 17;
	rep->table.part[3] = REDDN_WIRE_PART_EXISTS | 65;
}

/* The longest record has one byte more than its place in a slot */
static void long_records(struct reddn_wire_rep *rep)
{
	parts(rep);
	rep->table.max_value = htobe32(256 - 64 - 16 - 16 - 100 + 1);
}

/* The one that takes so many keys with the fewest bytes */
static void test_parts(void **state)
{
	struct reddn_session s;

	assert_int_equal(read_rep(&s, parts), 0);
	assert_int_equal(s.info.keys, 1);
	for (unsigned n = 1; n <= 20; n++)
		assert_int_equal(reddn_session_part(&s, 0, n), n <= 4 ? 4 : 16);
	for (unsigned n = 1; n <= 100; n++)
		assert_int_equal(reddn_session_part(&s, REDDN_WIRE_PART_EXISTS, n) & 0x7f, n <= 16 ? 16 : 64);
	assert_int_equal(read_rep(&s, unknown_parts), 0);
	assert_int_equal(reddn_session_part(&s, 0, 100), 4);
	assert_int_equal(reddn_session_part(&s, REDDN_WIRE_PART_EXISTS, 100), REDDN_WIRE_PART_EXISTS | 16);
	assert_int_equal(read_rep(&s, long_records), -EPROTO);
	assert_int_equal(read_rep(&s, as_it_is), 0);
	assert_int_equal(reddn_session_part(&s, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_text),
		cmocka_unit_test(test_put), cmocka_unit_test(test_put_if), cmocka_unit_test(test_exists),
		cmocka_unit_test(test_into), cmocka_unit_test(test_parts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
