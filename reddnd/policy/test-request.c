/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/request.h"

#include <endian.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct reddn_wire_req good(void)
{
	return (struct reddn_wire_req){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(8),
		.slot_addr = htobe64(0x7f0000001000),
		.slot_rkey = htobe32(0x1234),
		.slot_size = htobe32(4096),
		.offload = "users",
	};
}

static void test_good(void **state)
{
	struct reddn_wire_req req = good();
	struct request r;
	struct reddn_wire_rej rej;
	uint8_t padded[100] = {0};

	memcpy(padded, &req, sizeof(req));
	assert_true(request_parse(padded, sizeof(padded), &r, &rej));
	assert_int_equal(r.depth, 8);
	assert_int_equal(r.slot_addr, 0x7f0000001000);
	assert_int_equal(r.slot_rkey, 0x1234);
	assert_int_equal(r.slot_size, 4096);
	assert_string_equal(r.offload, "users");
	assert_true(request_check(&r, 8, 4096, &rej));
}

static void test_longest_name(void **state)
{
	struct reddn_wire_req req = good();
	struct request r;
	struct reddn_wire_rej rej;

	memset(req.offload, 'a', sizeof(req.offload));
	assert_true(request_parse(&req, sizeof(req), &r, &rej));
	assert_int_equal(strlen(r.offload), sizeof(req.offload));
}

static void refused(const struct reddn_wire_req *req, size_t size, enum reddn_wire_reason reason,
	uint32_t need, const char *words)
{
	struct request r;
	struct reddn_wire_rej rej;

	memset(&r, 0xee, sizeof(r));
	assert_false(request_parse(req, size, &r, &rej));
	assert_true(r.offload[0] == '\0' || strcmp(r.offload, "users") == 0);
	assert_int_equal(be32toh(rej.magic), REDDN_WIRE_MAGIC);
	assert_int_equal(rej.version, REDDN_WIRE_VERSION);
	assert_int_equal(rej.reason, reason);
	assert_int_equal(be32toh(rej.detail), need);
	assert_string_equal(rej.text, words);
}

#define REFUSED(change, reason, need, words)                                                                 \
	do {                                                                                                 \
		struct reddn_wire_req req = good();                                                          \
		req.change;                                                                                  \
		refused(&req, sizeof(req), reason, need, words);                                             \
	} while (0)

static void test_refusals(void **state)
{
	struct reddn_wire_req whole = good();

	refused(&whole, 55, REDDN_REJ_MALFORMED, 56, "the request has 55 bytes of private data; it takes 56");
	refused(NULL, 0, REDDN_REJ_MALFORMED, 56, "the request has 0 bytes of private data; it takes 56");
	REFUSED(magic = 0, REDDN_REJ_MALFORMED, REDDN_WIRE_MAGIC,
		"the request begins with 0, not with 0x5244444e: this is no reddnd client");
	REFUSED(version = 9, REDDN_REJ_VERSION, 2,
		"the client speaks version 9 of the protocol, the server version 2: the server must be "
		"updated");
	REFUSED(version = 1, REDDN_REJ_VERSION, 2,
		"the client speaks version 1 of the protocol, the server version 2: the client's libreddn "
		"must be updated");
	REFUSED(flags = 0x80, REDDN_REJ_MALFORMED, 0, "flags are 0x80; they must be among 0xe");
	whole.flags = 1;
	memcpy(whole.offload, "\x1b]0;\n\xff", 7);
	refused(&whole, sizeof(whole), REDDN_REJ_MALFORMED, 0, "flags are 0x1; they must be among 0xe");
	REFUSED(offload[0] = 0, REDDN_REJ_MALFORMED, 0,
		"the name of the offload is empty or has characters that names do not have");
	REFUSED(offload[2] = '\n', REDDN_REJ_MALFORMED, 0,
		"the name of the offload is empty or has characters that names do not have");
	REFUSED(depth = 0, REDDN_REJ_DEPTH, 1, "depth is 0; it must be at least 1");
	REFUSED(slot_addr = htobe64(0x1020), REDDN_REJ_SLOT, 0,
		"reply slots begin at 0x1020; the address must be a multiple of 64");
	REFUSED(slot_size = htobe32(0), REDDN_REJ_SLOT, 64,
		"reply slots of 0 bytes; the size must be a multiple of 64");
	REFUSED(slot_size = htobe32(100), REDDN_REJ_SLOT, 64,
		"reply slots of 100 bytes; the size must be a multiple of 64");
	REFUSED(slot_addr = htobe64(UINT64_MAX - 8 * 4096 + 1 + 64), REDDN_REJ_SLOT, 0,
		"the reply slots reach beyond the last address");
}

static void test_guess(void **state)
{
	struct reddn_wire_req req = good();
	struct reddn_wire_rej rej;
	struct request r;

	assert_true(request_parse(&req, sizeof(req), &r, &rej));
	assert_false(r.guessed);
	req.flags = REDDN_REQ_SLOT_GUESS;
	assert_true(request_parse(&req, sizeof(req), &r, &rej));
	assert_true(r.guessed);
}

static void test_limits(void **state)
{
	struct request r = {.depth = 9, .slot_size = 4096, .offload = "users"};
	struct reddn_wire_rej rej;

	assert_false(request_check(&r, 8, 4096, &rej));
	assert_int_equal(rej.reason, REDDN_REJ_DEPTH);
	assert_int_equal(be32toh(rej.detail), 8);
	assert_string_equal(rej.text, "depth is 9; offload users allows 8");
	assert_false(request_check(&r, 9, 4160, &rej));
	assert_int_equal(rej.reason, REDDN_REJ_SLOT);
	assert_int_equal(be32toh(rej.detail), 4160);
	assert_string_equal(rej.text, "reply slots of 4096 bytes; offload users needs 4160");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
