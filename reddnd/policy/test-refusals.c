/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/refusals.h"

#include "util/array.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static struct source of(const char *text)
{
	uint8_t a[16] = {[10] = 0xff, 0xff};

	if (inet_pton(AF_INET, text, a + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, a), 1);
	return source_of(a, 0);
}

enum { S = 1000000 };

static unsigned allowed(struct refusals *r, const char *text, unsigned n, uint64_t now)
{
	struct source s = of(text);
	unsigned yes = 0;

	for (unsigned i = 0; i < n; i++)
		if (refusals_allow(r, &s, now))
			yes++;
		else
			refusals_count(r, &s, text, now);
	return yes;
}

static void test_rate(void **state)
{
	struct refusals *r = calloc(1, sizeof(*r));
	char why[REFUSALS_WHY];
	struct source s;

	refusals_limit(r, 2, S);
	assert_int_equal(allowed(r, "192.0.2.1", 1000, S), REFUSALS_BURST);
	assert_int_equal(allowed(r, "192.0.2.2", 3, S), 3); /* another one is not affected */
	assert_int_equal(allowed(r, "2001:db8::1", 1000, S), REFUSALS_BURST);
	assert_int_equal(allowed(r, "2001:db8::2", 10, S), 0); /* but this is the same */
	assert_int_equal(allowed(r, "192.0.2.1", 1000, 2 * S), 2);
	assert_int_equal(r->pending, 990 + 990 + 10 + 998);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t n = refusals_take(r, &s, why);

		assert_true(n == 990 + 998 || n == 1000);
		assert_string_equal(why, n == 1000 ? "2001:db8::2" : "192.0.2.1");
	}
	assert_int_equal(refusals_take(r, &s, why), 0);
	assert_int_equal(refusals_take_rest(r), 0);
	assert_int_equal(r->pending, 0);
	free(r);
}

/* However many addresses one has: together they have a limit, and all are counted */
static void test_many(void **state)
{
	struct refusals *r = calloc(1, sizeof(*r));
	unsigned yes = 0, asked = 5 * REFUSALS_MAX;
	char text[64], why[REFUSALS_WHY];
	uint64_t counted = 0, n;
	struct source s;

	refusals_limit(r, 1, S);
	for (unsigned i = 0; i < asked; i++) {
		snprintf(text, sizeof(text), "2001:db8:0:%x::1", i);
		yes += allowed(r, text, 1, S);
	}
	assert_int_equal(yes, REFUSALS_SHARES * REFUSALS_BURST);
	assert_int_equal(r->n, REFUSALS_MAX);
	assert_int_equal(r->pending, asked - yes);
	for (unsigned i = 0; i < 16 && (n = refusals_take(r, &s, why)); i++)
		counted += n;
	assert_int_equal(counted, 16);
	counted += refusals_take_rest(r);
	assert_int_equal(counted, asked - yes);
	assert_int_equal(refusals_take_rest(r), 0);
	free(r);
}

static void test_limit(void **state)
{
	struct refusals *r = calloc(1, sizeof(*r));

	refusals_limit(r, 100, S);
	assert_int_equal(allowed(r, "192.0.2.1", 1000, S), 100);
	refusals_limit(r, 5, S); /* a new rate holds for those who are known */
	assert_int_equal(allowed(r, "192.0.2.1", 1000, 2 * S), 5);
	assert_int_equal(allowed(r, "192.0.2.3", 1000, 2 * S), REFUSALS_BURST);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
