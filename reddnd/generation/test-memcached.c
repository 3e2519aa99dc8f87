/* SPDX-License-Identifier: BSD-2-Clause */
/* When the next look at a memcached is: compiled in, what decides is its own */
#include "reddnd/generation/memcached.c"

#include "tests/lib/cmocka.h"

/* Looks that are soon, before one that is not */
static unsigned soon(struct looks *l)
{
	unsigned n = 0;

	while (n <= 2 * LOOKS_SOON && looks_rest_ms(l, false) == LOOKS_SOON_MS)
		n++;
	return n;
}

static void test_ends(void **state)
{
	struct looks l = {0};

	assert_int_equal(looks_rest_ms(&l, false), LOOKS_MS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(looks_rest_ms(&l, true), LOOKS_MS);
	/* the last of them is not soon any more */
	assert_int_equal(soon(&l), LOOKS_SOON - 1);
	assert_int_equal(looks_rest_ms(&l, false), LOOKS_MS);
	assert_int_equal(soon(&l), 0);
	/* it answers, and ends once more */
	assert_int_equal(looks_rest_ms(&l, true), LOOKS_MS);
	assert_int_equal(soon(&l), LOOKS_SOON - 1);
}

static void test_begins(void **state)
{
	struct looks l = {0};

	looks_begins(&l);
	assert_int_equal(soon(&l), LOOKS_SOON - 1);
	looks_begins(&l);
	assert_int_equal(looks_rest_ms(&l, false), LOOKS_SOON_MS);
	assert_int_equal(looks_rest_ms(&l, true), LOOKS_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
