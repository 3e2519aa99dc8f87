/* SPDX-License-Identifier: BSD-2-Clause */
/* Slab pages: runs, alignment, and a random sequence beside a map of single pages. */
#include "memcached/pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { PAGES = 40 };

static int make(void **state)
{
	static struct pages p;

	*state = &p;
	return pages_init(&p, PAGES);
}

static int unmake(void **state)
{
	pages_deinit(*state);
	return 0;
}

static void test_single(void **state)
{
	struct pages *p = *state;

	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(pages_take(p, 1, 1), i);
	assert_int_equal(pages_take(p, 1, 1), -1);
	assert_int_equal(pages_give(p, 7), 0);
	assert_int_equal(pages_give(p, 7), -EINVAL);
	assert_int_equal(pages_give(p, PAGES), -EINVAL);
	assert_int_equal(pages_take(p, 1, 1), 7);
	assert_int_equal(pages_take(p, 1, 1), -1);
}

static void test_runs(void **state)
{
	struct pages *p = *state;

	assert_int_equal(pages_take(p, 3, 1), 0);
	assert_int_equal(pages_take(p, 4, 2), 4);
	assert_int_equal(pages_take(p, 1, 1), 3);
	assert_int_equal(pages_give(p, 5), -EINVAL);
	assert_int_equal(pages_take(p, 40, 1), -1);
	assert_int_equal(pages_take(p, 32, 1), 8);
	assert_int_equal(pages_give(p, 4), 0);
	assert_int_equal(pages_take(p, 4, 1), 4);
	assert_int_equal(pages_take(p, 1, 1), -1);
}

static void test_random(void **state)
{
	bool used[PAGES] = {0};
	unsigned runs[PAGES] = {0};
	struct pages *p = *state;

	srandom(1);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned run = 1 + (unsigned)random() % 4, align = 1 + (unsigned)random() % 2;
		unsigned page = (unsigned)random() % PAGES;
		int64_t at;

		if (runs[page]) {
			assert_int_equal(pages_give(p, page), 0);
			for (unsigned k = 0; k < runs[page]; k++)
				used[page + k] = false;
			runs[page] = 0;
			continue;
		}
		at = pages_take(p, run, align);
		if (at >= 0) {
			assert_int_equal(at % align, 0);
			assert_in_range(at + run, 1, PAGES);
			runs[at] = run;
		}
		for (unsigned k = 0, free = 0; k < PAGES; k++) {
			if (at >= 0 && k >= at && k < at + run) {
				assert_false(used[k]);
				used[k] = true;
			}
			free = used[k] || (free == 0 && k % align) ? 0 : free + 1;
			if (at < 0)
				assert_true(free < run);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_single, make, unmake),
		cmocka_unit_test_setup_teardown(test_runs, make, unmake),
		cmocka_unit_test_setup_teardown(test_random, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
