/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of checks is in order, and verdicts follow from what checks return and count. */
#include "reddnd/probe/bed.h"

#include <errno.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static int outcome;
static unsigned timeouts;
static struct probe_result counted;

static int fake(struct probe *probe, struct probe_result *result)
{
	if (timeouts) {
		timeouts--;
		return probe_cannot(result, -ETIMEDOUT, "late");
	}
	result->tried = counted.tried;
	result->showed = counted.showed;
	return outcome ? outcome : probe_denies(result, "no");
}

static struct probe_result run(unsigned flags, int r, uint64_t tried, uint64_t showed)
{
	const struct probe_check check = {.number = PROBE_CHAIN, .name = "x", .flags = flags, .run = fake};
	struct probe_result result;

	outcome = r;
	counted.tried = tried;
	counted.showed = showed;
	probe_run(&(struct probe_attr){0}, &check, &result);
	return result;
}

static void table(void **state)
{
	unsigned n;
	const struct probe_check *all = probe_checks(&n);

	assert_true(n > 20);
	for (unsigned i = 0; i < n; i++) {
		assert_true(!i || all[i - 1].number < all[i].number);
		assert_true(*all[i].assumes && *all[i].breaks && *all[i].source);
		assert_true(!all[i].run != !all[i].on_bed);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(all[i].name, all[j].name);
		/* the daemon has no time for these */
		assert_true(!(all[i].flags & PROBE_AT_START) || !(all[i].flags & PROBE_LONG));
	}
}

static void verdicts(void **state)
{
	struct probe_result r = run(0, 1, 0, 0);

	assert_int_equal(r.verdict, PROBE_HOLDS);
	assert_int_equal(r.showed, 1);
	r = run(0, 0, 0, 0);
	assert_int_equal(r.verdict, PROBE_DOES_NOT);
	assert_string_equal(r.words, "no");
	r = run(0, -ENOMEM, 0, 0);
	assert_int_equal(r.verdict, PROBE_NOT_TRIED);
	assert_int_equal(r.error, -ENOMEM);
	assert_true(*r.words);
}

/* Nothing was late: a right answer is worth nothing, a wrong one counts */
static void races(void **state)
{
	struct probe_result r = run(PROBE_RACE, 1, 1000, 0);

	assert_int_equal(r.verdict, PROBE_NOT_TRIED);
	assert_int_equal(r.error, 0);
	assert_string_equal(r.words, "in 1000 trials nothing was late, so none could have shown it");
	assert_int_equal(run(PROBE_RACE, 1, 0, 0).verdict, PROBE_NOT_TRIED);
	assert_int_equal(run(PROBE_RACE, 1, 1000, 1).verdict, PROBE_HOLDS);
	assert_int_equal(run(PROBE_RACE, 0, 1000, 0).verdict, PROBE_DOES_NOT);
}

/* A busy machine: the check is run again, but not without end */
static void patience(void **state)
{
	struct probe_result r;

	timeouts = 3;
	r = run(0, 1, 0, 0);
	assert_int_equal(r.verdict, PROBE_HOLDS);
	assert_string_equal(r.words, "");
	timeouts = 4;
	r = run(0, 1, 0, 0);
	assert_int_equal(r.verdict, PROBE_NOT_TRIED);
	assert_int_equal(r.error, -ETIMEDOUT);
	assert_int_equal(timeouts, 0);
}

static void unusable(void **state)
{
	const struct probe_attr attr = {.unusable = "it is broken"};
	unsigned n;
	const struct probe_check *all = probe_checks(&n);
	struct probe_result r;

	for (unsigned i = 0; i < n; i++) {
		probe_run(&attr, &all[i], &r);
		assert_int_equal(r.verdict, all[i].number == PROBE_DEVICE ? PROBE_DOES_NOT : PROBE_NOT_TRIED);
		assert_true(*r.words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(races),
		cmocka_unit_test(patience),
		cmocka_unit_test(unusable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
