/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/end-reason.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_told),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_long_words_are_cut),
		cmocka_unit_test(test_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
