/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/request.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- end-reason ---- */

static const uint8_t alice[16] = {[7] = 1}, bob[16] = {[7] = 2};

static struct end_reason_query of(uint64_t session)
{
	return (struct end_reason_query){.session = session, .slot_addr = 0x1000 * session, .slot_rkey = 77};
}

/* Returns the reason of the answer; that of REDDN_REJ_ENDED must have the words @words and the way @how */
static uint8_t ask(const struct end_reasons *f, const uint8_t address[16], struct end_reason_query q,
	enum reddn_wire_end how, const char *words)
{
	struct reddn_wire_rej rej;

	end_reasons_answer(f, address, &q, &rej);
	if (rej.reason == REDDN_REJ_ENDED) {
		assert_int_equal(be32toh(rej.detail), how);
		assert_string_equal(rej.text, words);
	}
	return rej.reason;
}

static void test_who_is_told(void **state)
{
	struct end_reasons *f = calloc(1, sizeof(*f));
	struct end_reason_query five = of(5), q;

	assert_int_equal(ask(f, alice, (struct end_reason_query){0}, 0, ""), REDDN_REJ_UNKNOWN);
	end_reasons_add(f, alice, 0, &five, REDDN_WIRE_END_BUDGET, "too slow");
	assert_int_equal(ask(f, alice, five, REDDN_WIRE_END_BUDGET, "too slow"), REDDN_REJ_ENDED);
	assert_int_equal(ask(f, bob, five, 0, ""), REDDN_REJ_UNKNOWN);
	q = five;
	q.slot_rkey++;
	assert_int_equal(ask(f, alice, q, 0, ""), REDDN_REJ_UNKNOWN);
	q = five;
	q.slot_addr += 64;
	assert_int_equal(ask(f, alice, q, 0, ""), REDDN_REJ_UNKNOWN);
	q = five;
	q.session++;
	assert_int_equal(ask(f, alice, q, 0, ""), REDDN_REJ_UNKNOWN);
	free(f);
}

static void test_shares(void **state)
{
	struct end_reasons *f = calloc(1, sizeof(*f));
	struct end_reason_query q = of(1);

	end_reasons_add(f, bob, 0, &q, REDDN_WIRE_END_OPERATOR, "kicked");
	for (uint64_t i = 2; i < 5000; i++) {
		q = of(i);
		end_reasons_add(f, alice, 0, &q, REDDN_WIRE_END_FAILED, "again");
	}
	/* Many sessions of one client displace only its own oldest ones */
	assert_int_equal(ask(f, bob, of(1), REDDN_WIRE_END_OPERATOR, "kicked"), REDDN_REJ_ENDED);
	for (uint64_t i = 5000 - END_REASONS_EACH; i < 5000; i++)
		assert_int_equal(ask(f, alice, of(i), REDDN_WIRE_END_FAILED, "again"), REDDN_REJ_ENDED);
	assert_int_equal(ask(f, alice, of(5000 - END_REASONS_EACH - 1), 0, ""), REDDN_REJ_UNKNOWN);
	/* All addresses of a prefix are those of one client */
	for (uint64_t i = 5000; i < 7000; i++) {
		const uint8_t own[16] = {[0] = 8, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i};

		q = of(i);
		end_reasons_add(f, own, 0, &q, REDDN_WIRE_END_FAILED, "own");
		assert_int_equal(ask(f, own, q, REDDN_WIRE_END_FAILED, "own"), REDDN_REJ_ENDED);
	}
	assert_int_equal(ask(f, bob, of(1), REDDN_WIRE_END_OPERATOR, "kicked"), REDDN_REJ_ENDED);
	/* With many clients the oldest reason goes first */
	for (uint64_t i = 0; i < END_REASONS_MAX; i++) {
		const uint8_t other[16] = {[0] = 9, [6] = (uint8_t)(i >> 8), [7] = (uint8_t)i};

		q = of(i + 5000);
		end_reasons_add(f, other, 0, &q, REDDN_WIRE_END_FAILED, "other");
		assert_int_equal(ask(f, other, q, REDDN_WIRE_END_FAILED, "other"), REDDN_REJ_ENDED);
	}
	assert_int_equal(ask(f, bob, of(1), 0, ""), REDDN_REJ_UNKNOWN);
	free(f);
}

static void test_long_words_are_cut(void **state)
{
	struct end_reasons *f = calloc(1, sizeof(*f));
	struct end_reason_query q = of(1);
	char words[400], cut[sizeof((struct reddn_wire_rej *)0)->text] = "";

	memset(words, 'w', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	memset(cut, 'w', sizeof(cut) - 1);
	end_reasons_add(f, alice, 0, &q, REDDN_WIRE_END_FAILED, words);
	assert_int_equal(ask(f, alice, q, REDDN_WIRE_END_FAILED, cut), REDDN_REJ_ENDED);
	free(f);
}

static void test_verdicts(void **state)
{
	assert_int_equal(end_reason_of_verdict(VERDICT_STEP), REDDN_WIRE_END_FAILED);
	assert_int_equal(end_reason_of_verdict(VERDICT_QUEUE), REDDN_WIRE_END_FAILED);
	assert_int_equal(end_reason_of_verdict(VERDICT_REQUEST), REDDN_WIRE_END_PROTOCOL);
	assert_int_equal(end_reason_of_verdict(VERDICT_RNR), REDDN_WIRE_END_UNREACHABLE);
	assert_int_equal(end_reason_of_verdict(VERDICT_UNREACHABLE), REDDN_WIRE_END_UNREACHABLE);
	assert_int_equal(end_reason_of_verdict(VERDICT_TIME), REDDN_WIRE_END_BUDGET);
	assert_int_equal(end_reason_of_verdict(VERDICT_LOOP), REDDN_WIRE_END_BUDGET);
}

/* ---- question ---- */

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_longest_name),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_who_is_told),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_long_words_are_cut),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
