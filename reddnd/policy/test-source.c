/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/source.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static const struct {
	const char *address;
	unsigned bits;
	const char *source, *network;
} cases[] = {
	{"::ffff:192.0.2.77", 0, "192.0.2.77", "192.0.2.0"},
	{"::ffff:192.0.2.77", 32, "192.0.2.77", "192.0.2.0"},
	{"2001:db8:1:2:3:4:5:6", 0, "2001:db8:1:2::/64", "2001:db8:1::/64"},
	{"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64", "2001:db8:1::/64"},
	{"2001:db8:1:2ff:3:4:5:6", 57, "2001:db8:1:280::/57", "2001:db8:1::/57"},
	{"2001:db8:1:2:3:4:5:6", 32, "2001:db8::/32", "2001:db8::/32"},
	{"2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6", "2001:db8:1::"},
	{"fe80::1:2", 64, "fe80::1:2", "fe80::"},
	{"fe80::1:2", 0, "fe80::1:2", "fe80::"},
	{"::", 0, "::/64", "::/64"},
};

static void test_sources(void **state)
{
	char text[SOURCE_TEXT];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct source s, n;
		uint8_t a[16];

		assert_int_equal(inet_pton(AF_INET6, cases[i].address, a), 1);
		s = source_of(a, cases[i].bits);
		n = source_network(&s);
		assert_string_equal(source_text(&s, cases[i].bits, text), cases[i].source);
		assert_string_equal(source_text(&n, cases[i].bits, text), cases[i].network);
	}
}

/* ---- bans ---- */

static struct source of(const char *text)
{
	uint8_t a[16] = {[10] = 0xff, 0xff};

	if (inet_pton(AF_INET, text, a + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, a), 1);
	return source_of(a, 0);
}

static void add(struct bans *b, const char *text, uint64_t until, const char *why)
{
	struct source s = of(text);

	bans_add(b, &s, until, 0, why, 0);
}

static const struct ban *find(struct bans *b, const char *text, uint64_t now)
{
	struct source s = of(text);

	return bans_find(b, &s, now);
}

static void test_bans(void **state)
{
	struct bans *b = calloc(1, sizeof(*b));

	add(b, "192.0.2.1", 1000, "words");
	assert_string_equal(find(b, "192.0.2.1", 999)->why, "words");
	assert_null(find(b, "192.0.2.10", 0));
	assert_null(find(b, "::192.0.2.1", 0));
	add(b, "192.0.2.1", 500, "shorter");
	assert_string_equal(find(b, "192.0.2.1", 999)->why, "words");
	add(b, "192.0.2.1", 2000, "longer");
	assert_string_equal(find(b, "192.0.2.1", 1999)->why, "longer");
	assert_null(find(b, "192.0.2.1", 2000));
	assert_int_equal(b->n, 0);
	/* a host has all addresses of its prefix */
	add(b, "2001:db8::1", 1000, "words");
	assert_non_null(find(b, "2001:db8::ffff:1:2", 999));
	assert_null(find(b, "2001:db8:0:1::1", 999));
	free(b);
}

/* Those that are over make room first, then those that would end first */
static void test_full(void **state)
{
	struct bans *b = calloc(1, sizeof(*b));
	struct source s = of("10.0.0.1");
	char text[64];

	for (unsigned i = 0; i < BANS_MAX; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1", i / 256, i % 256);
		add(b, text, i < 10 ? 100 : 5000 + i, "many");
	}
	s = of("11.0.0.1");
	bans_add(b, &s, 9000, 0, "one more", 200);
	assert_int_equal(b->n, BANS_MAX - 9);
	assert_non_null(find(b, "11.0.0.1", 300));
	assert_non_null(find(b, "10.0.10.1", 300));
	for (unsigned i = 1; i < 11; i++) {
		snprintf(text, sizeof(text), "11.0.%u.1", i);
		add(b, text, 9000, "fills it");
	}
	assert_int_equal(b->n, BANS_MAX);
	assert_null(find(b, "10.0.10.1", 300));
	assert_non_null(find(b, "10.0.11.1", 300));
	free(b);
}

/* An attacker with any number of addresses of a network: bans of others stay, and others are still banned,
 * also if its bans end later or earlier than theirs */
static void check_attack(const char *before, const char *behind, uint64_t until)
{
	struct bans *b = calloc(1, sizeof(*b));
	char text[64];

	add(b, "192.0.2.1", 1000, "before");
	add(b, "2001:db8:9::1", 1000, "before");
	for (unsigned i = 0; i < 2 * BANS_MAX; i++) {
		snprintf(text, sizeof(text), "%s%x%s", before, i % 60000 + 1, behind);
		add(b, text, until + i, "attack");
	}
	assert_string_equal(find(b, "192.0.2.1", 1)->why, "before");
	assert_string_equal(find(b, "2001:db8:9::1", 1)->why, "before");
	add(b, "198.51.100.1", 900, "after");
	for (unsigned i = 0; i < 2 * BANS_MAX; i++) {
		snprintf(text, sizeof(text), "%s%x%s", before, i % 60000 + 1, behind);
		add(b, text, until + 2 * BANS_MAX + i, "attack");
	}
	assert_string_equal(find(b, "198.51.100.1", 1)->why, "after");
	assert_non_null(find(b, text, 1));
	assert_int_equal(b->n, BANS_MAX);
	free(b);
}

static void test_attack(void **state)
{
	check_attack("2001:db8:7:", "::1", 100);
	check_attack("2001:db8:7:", "::1", 1000000);
	check_attack("fe80::", "", 1000000);
}

/* ---- refusals ---- */

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

/* ---- reachability ---- */

static struct reachability memory;

static const uint8_t *gid(unsigned n)
{
	static uint8_t g[16];

	memcpy(g, &n, sizeof(n));
	return g;
}

static int setup(void **state)
{
	memset(&memory, 0, sizeof(memory));
	return 0;
}

static void forgets(void **state)
{
	assert_false(reachability_is_silent(&memory, gid(0), 0));
	assert_false(reachability_is_known(&memory, gid(0), 0));
	reachability_failed(&memory, gid(1), 100);
	assert_true(reachability_is_silent(&memory, gid(1), 100 + REACHABILITY_SILENT_US - 1));
	assert_false(reachability_is_silent(&memory, gid(1), 100 + REACHABILITY_SILENT_US));
	assert_false(reachability_is_silent(&memory, gid(2), 100));
	reachability_answered(&memory, gid(2), 100);
	assert_true(reachability_is_known(&memory, gid(2), 100 + REACHABILITY_KNOWN_US - 1));
	assert_false(reachability_is_known(&memory, gid(2), 100 + REACHABILITY_KNOWN_US));
	assert_false(reachability_is_known(&memory, gid(1), 100));
}

static void is_bounded(void **state)
{
	for (unsigned i = 1; i <= REACHABILITY_SILENT + 1; i++)
		reachability_failed(&memory, gid(i), i);
	assert_false(reachability_is_silent(&memory, gid(1), REACHABILITY_SILENT + 1)); /* the oldest */
	for (unsigned i = 2; i <= REACHABILITY_SILENT + 1; i++)
		assert_true(reachability_is_silent(&memory, gid(i), REACHABILITY_SILENT + 1));
}

/* One that fails again and again has one place */
static void once(void **state)
{
	for (unsigned i = 1; i < REACHABILITY_SILENT; i++)
		reachability_failed(&memory, gid(i), i);
	for (unsigned i = 0; i < REACHABILITY_SILENT; i++)
		reachability_failed(&memory, gid(9999), REACHABILITY_SILENT + i);
	for (unsigned i = 1; i < REACHABILITY_SILENT; i++)
		assert_true(reachability_is_silent(&memory, gid(i), REACHABILITY_SILENT));
	assert_true(reachability_is_silent(
		&memory, gid(9999), 2 * REACHABILITY_SILENT + REACHABILITY_SILENT_US - 2));
}

/* Those that do not answer displace none that did; one that did, and does no longer, is not known any more */
static void known_ones_stay(void **state)
{
	reachability_answered(&memory, gid(7), 1);
	for (unsigned i = 1000; i < 10000; i++)
		reachability_failed(&memory, gid(i), i);
	assert_true(reachability_is_known(&memory, gid(7), 10000));
	reachability_failed(&memory, gid(7), 10000);
	assert_false(reachability_is_known(&memory, gid(7), 10001));
	for (unsigned i = 0; i < REACHABILITY_KNOWN; i++)
		reachability_answered(&memory, gid(i), 20000 + i);
	reachability_answered(&memory, gid(0), 30000); /* one place each */
	for (unsigned i = 0; i < REACHABILITY_KNOWN; i++)
		assert_true(reachability_is_known(&memory, gid(i), 30000));
	reachability_answered(&memory, gid(9999), 30001);
	assert_false(reachability_is_known(&memory, gid(1), 30001)); /* the oldest */
	assert_true(reachability_is_known(&memory, gid(0), 30001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_bans),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_attack),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_limit),
		cmocka_unit_test_setup(forgets, setup),
		cmocka_unit_test_setup(is_bounded, setup),
		cmocka_unit_test_setup(once, setup),
		cmocka_unit_test_setup(known_ones_stay, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
