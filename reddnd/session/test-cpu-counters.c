/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters in the ledger, as the next daemon reads them after any store of the one before. */
#include "reddnd/session/cpu-counters.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 16, REPLIES = 8 };

static struct cpu_counters good(const struct ledger_cpu *l)
{
	struct cpu_counters c;

	assert_int_equal(cpu_counters_read(l, SLOTS, REPLIES, &c), 0);
	return c;
}

static void expect(const struct ledger_cpu *l, struct cpu_counters expected)
{
	const struct cpu_counters c = good(l);

	assert_int_equal(c.received, expected.received);
	assert_int_equal(c.begun, expected.begun);
	assert_int_equal(c.finished, expected.finished);
	assert_int_equal(c.done, expected.done);
	assert_int_equal(c.cqes, expected.cqes);
	assert_int_equal(c.added, expected.added);
}

static void test_requests(void **state)
{
	struct ledger_cpu l = {0};

	(void)state;
	expect(&l, (struct cpu_counters){0});
	cpu_counters_taken(&l, 2, 0, 2);
	expect(&l, (struct cpu_counters){.received = 2, .cqes = 2});
	assert_false(cpu_counters_amid(&l));
	cpu_counters_begun(&l, 1);
	assert_true(cpu_counters_amid(&l));
	cpu_counters_finished(&l, 1, 3);
	assert_false(cpu_counters_amid(&l));
	cpu_counters_begun(&l, 2);
	expect(&l, (struct cpu_counters){.received = 2, .begun = 2, .finished = 1, .cqes = 2, .added = 3});
	cpu_counters_finished(&l, 2, 4);
	cpu_counters_taken(&l, 3, 2, 4);
	expect(&l, (struct cpu_counters){
			   .received = 3, .begun = 2, .finished = 2, .done = 2, .cqes = 4, .added = 4});
}

/* What is being written does not count yet */
static void test_half_taken(void **state)
{
	struct ledger_cpu l = {0};

	(void)state;
	cpu_counters_taken(&l, 5, 0, 5);
	for (unsigned i = 0; i < 3; i++) {
		const unsigned last = (unsigned)l.last;

		l.taken[!last].received = l.taken[!last].done = UINT64_MAX;
		l.taken[!last].cqes = UINT32_MAX;
		assert_int_equal(good(&l).received, 5 + i);
		assert_int_equal(good(&l).cqes, 5 + i);
		cpu_counters_taken(&l, 6 + i, 0, 6 + i);
		assert_int_not_equal(l.last, last);
	}
}

static void test_large_numbers(void **state)
{
	const uint64_t n = UINT64_C(1) << 40;
	struct ledger_cpu l = {0};

	(void)state;
	cpu_counters_taken(&l, n + SLOTS, n, UINT32_MAX);
	cpu_counters_begun(&l, n + REPLIES);
	cpu_counters_finished(&l, n + REPLIES, UINT16_MAX);
	expect(&l, (struct cpu_counters){.received = n + SLOTS,
			   .begun = n + REPLIES,
			   .finished = n + REPLIES,
			   .done = n,
			   .cqes = UINT32_MAX,
			   .added = UINT16_MAX});
}

static void test_impossible(void **state)
{
	static const struct {
		uint64_t received, begun, finished, done, last;
	} bad[] = {
		{4, 2, 2, 3, 0},                      /* done before it was sent */
		{12, REPLIES + 1, REPLIES + 1, 0, 0}, /* replies without room */
		{4, 1, 2, 0, 0},                      /* finished before it has begun */
		{4, 3, 1, 0, 0},                      /* two at a time */
		{4, 5, 5, 0, 0},                      /* of nobody */
		{SLOTS + 1, 0, 0, 0, 0},              /* RECVs without room */
		{0, 0, 0, 0, 2},                      /* neither of the two */
	};
	struct cpu_counters c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct ledger_cpu l = {.begun = bad[i].begun, .finished = bad[i].finished << 16};

		l.taken[0].received = bad[i].received;
		l.taken[0].done = bad[i].done;
		l.last = bad[i].last;
		assert_int_equal(cpu_counters_read(&l, SLOTS, REPLIES, &c), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_half_taken),
		cmocka_unit_test(test_large_numbers),
		cmocka_unit_test(test_impossible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
