/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/bans.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bans),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_attack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
