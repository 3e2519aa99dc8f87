/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/rate.h"

#include "util/array.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { S = 1000000 };

static void test_no_limit(void **state)
{
	struct rate r;

	rate_init(&r, 0, 0, 5);
	assert_true(rate_available(&r, 5) == UINT64_MAX);
	rate_take(&r, 1ull << 60);
	assert_true(rate_available(&r, 6) == UINT64_MAX);
	assert_int_equal(rate_delay(&r, 1000, 6), 0);
}

static void test_burst(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 50, S);
	assert_int_equal(rate_available(&r, S), 50);
	rate_take(&r, 50);
	assert_int_equal(rate_available(&r, S), 0);
	assert_int_equal(rate_delay(&r, 1, S), 1000);
	assert_int_equal(rate_delay(&r, 60, S), 50000); /* what the bucket holds */
	assert_int_equal(rate_available(&r, S + 999), 0);
	assert_int_equal(rate_delay(&r, 1, S + 999), 1);
	assert_int_equal(rate_available(&r, S + 1000), 1);
	assert_int_equal(rate_available(&r, 100ull * S), 50); /* a pause fills the bucket, and no more */
	assert_int_equal(rate_available(&r, S), 50);          /* a clock that goes back adds nothing */
}

static void test_defaults(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 0, 0);
	assert_int_equal(rate_available(&r, 0), 100);
	rate_init(&r, 3, 0, 0);
	assert_int_equal(rate_available(&r, 0), 1);
}

/* With any interval between refills the rate is kept in the long run, and never exceeded by more than one
 * burst */
static void test_exact(void **state)
{
	static const uint64_t rates[] = {1, 7, 999, 12345, 1000003, 50000000};

	for (size_t i = 0; i < COUNT(rates); i++) {
		uint64_t now = 17, taken = 0, start = now;
		struct rate r;

		srand((unsigned)i);
		rate_init(&r, rates[i], rates[i] < 10 ? 5 : 0, now);
		while (now < start + 100 * (uint64_t)S) {
			uint64_t n = rate_available(&r, now);

			rate_take(&r, n);
			taken += n;
			assert_true(taken <= r.burst + (unsigned __int128)rates[i] * (now - start) / S);
			now += (uint64_t)rand() % (r.burst * S / rates[i] + 1) + 1;
		}
		assert_true(taken >= 95 * rates[i]);
	}
}

static void test_set(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 100, 0);
	rate_set(&r, 10, 4, 0);
	assert_int_equal(rate_available(&r, 0), 4);
	rate_take(&r, 4);
	assert_int_equal(rate_available(&r, S / 2), 4);
	rate_set(&r, 0, 0, S);
	assert_true(rate_available(&r, S) == UINT64_MAX);
	rate_set(&r, 1000, 100, 2 * S);
	assert_true(rate_available(&r, 3 * (uint64_t)S) <= 100);
	/* A delay is just long enough */
	rate_take(&r, rate_available(&r, 3 * (uint64_t)S));
	for (uint64_t n = 1; n <= 100; n++) {
		uint64_t at = 3 * (uint64_t)S, d = rate_delay(&r, n, at);
		struct rate copy = r;

		assert_true(rate_available(&copy, at + d - 1) < n);
		assert_true(rate_available(&copy, at + d) >= n);
	}
}

static void test_part(void **state)
{
	struct rate_sharers of = {.waiting = 3};
	struct rate r;

	rate_init(&r, 1000, 10, S);
	assert_int_equal(rate_part(&r, &of, S), 4);
	of.waiting = 0;
	assert_int_equal(rate_part(&r, &of, S), 10);
	/* in a round each gets as much, and together they get all */
	of = (struct rate_sharers){.waiting = 3, .turns = 3};
	for (unsigned expect = 4; of.turns; expect = 3) {
		uint64_t n = rate_part(&r, &of, S);

		assert_int_equal(n, expect);
		rate_take(&r, n);
	}
	assert_int_equal(rate_available(&r, S), 0);
	rate_init(&r, 0, 0, S);
	assert_true(rate_part(&r, &of, S) == UINT64_MAX);
}

static void test_give(void **state)
{
	struct rate r;

	assert_int_equal(rate_burst(1000, 7), 100);
	assert_int_equal(rate_burst(1000, 700), 700);
	rate_init(&r, 1000, 50, S);
	rate_take(&r, 50);
	rate_give(&r, 20);
	assert_int_equal(rate_available(&r, S), 20);
	rate_give(&r, 31); /* tokens beyond its size are lost */
	assert_int_equal(rate_available(&r, S), 50);
	rate_init(&r, 0, 0, S);
	rate_give(&r, 5);
	assert_true(rate_available(&r, S) == UINT64_MAX);
}

static void test_awaited(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 50, S);
	rate_take(&r, 50);
	rate_await(&r, true);
	rate_await(&r, true);
	assert_int_equal(rate_available(&r, S + S / 2), 500);
	rate_await(&r, false);
	assert_int_equal(rate_available(&r, 20ull * S), 1050); /* the tokens of a second, and no more */
	rate_give(&r, 5);
	assert_int_equal(rate_available(&r, 21ull * S), 1050);
	rate_await(&r, false);
	assert_int_equal(rate_available(&r, 22ull * S), 1050); /* tokens of waiters stay */
	rate_give(&r, 5);
	rate_take(&r, 1010);
	assert_int_equal(rate_available(&r, 30ull * S), 50);
	rate_init(&r, 1, 1, S); /* no part of a token is lost either */
	rate_take(&r, 1);
	rate_await(&r, true);
	for (unsigned i = 1; i <= 10; i++) {
		assert_int_equal(rate_available(&r, S + i * (S + S / 20)), 1);
		rate_take(&r, 1);
	}
	assert_int_equal(r.part, S / 2);
}

/* Tokens that were spent without being there are paid by the rate, to the last one, however late one looks */
static void test_debt(void **state)
{
	struct rate r;

	rate_init(&r, 1000, 50, S);
	rate_charge(&r, 20);
	assert_int_equal(rate_available(&r, S), 30);
	rate_charge(&r, 3030);
	assert_int_equal(rate_available(&r, S), 0);
	assert_int_equal(rate_delay(&r, 1, S), 3001 * 1000);
	assert_int_equal(rate_available(&r, 2 * S), 0);
	assert_int_equal(r.debt, 2000);
	rate_give(&r, 500);
	assert_int_equal(r.debt, 1500);
	assert_int_equal(rate_available(&r, 3 * (uint64_t)S + S / 2), 0);
	assert_int_equal(rate_available(&r, 3 * (uint64_t)S + S / 2 + 1000), 1);
	rate_charge(&r, 11);
	rate_give(&r, 14); /* pays the debt, then fills the bucket */
	assert_int_equal(rate_available(&r, 3 * (uint64_t)S + S / 2 + 1000), 4);
	rate_charge(&r, 104);
	assert_int_equal(rate_available(&r, 100ull * S), 50); /* no more than the burst after a pause */
	rate_charge(&r, 150);
	rate_set(&r, 2000, 50, 100ull * S); /* a new limit does not forget it */
	assert_int_equal(rate_delay(&r, 1, 100ull * S), 101 * 500);
	rate_set(&r, 0, 0, 100ull * S);
	rate_charge(&r, 7);
	assert_int_equal(r.debt, 0);
	rate_charge(&r, UINT64_MAX);
	assert_true(rate_available(&r, 101ull * S) == UINT64_MAX);
}

/* However large and frequent the charges: what was spent is at most a burst, the rate and the last charge */
static void test_debt_is_paid(void **state)
{
	for (unsigned size = 1; size <= 1000000; size *= 10) {
		uint64_t now = S, spent = 0;
		struct rate r;

		rate_init(&r, 1000, 50, now);
		for (; now < 1000 * (uint64_t)S; now += 777777)
			while (rate_available(&r, now)) {
				rate_charge(&r, size);
				spent += size;
				assert_true(spent <= 50 + (now - S) / 1000 + size);
			}
		assert_true(size < 100000 || spent >= 900 * 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_give),
		cmocka_unit_test(test_debt),
		cmocka_unit_test(test_debt_is_paid),
		cmocka_unit_test(test_awaited),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
