/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device lacks for a program: one fact of the device at a time. */
#include "reddnd/generation/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static const char plain[] = "program plain\n"
			    "region words\n"
			    "write words @ 0 as le64 -> slot @ 8\n"
			    "write_imm 1 as u8 -> slot @ 0\n",
		  counts[] = "program counts\n"
			     "region words writable\n"
			     "var old : le64\n"
			     "add words @ 0 as le64 by 1, was -> old\n"
			     "write_imm old -> slot @ 0\n",
		  patches[] = "program patches\n"
			      "region words\n"
			      "arg at : offset(1) in words\n"
			      "write words @ at as le64 -> slot @ 8\n"
			      "write_imm 1 as u8 -> slot @ 0\n",
		  gathers[] = "program gathers\n"
			      "region words\n"
			      "read words @ 0 as le64 -> a\n"
			      "write_imm a, a, a, a, a, a, a, a, a, a, a, a, a, a, a -> slot @ 0\n";

/* A device that has all */
static const struct rnic_caps best = {
	.atomic_ops = RNIC_ATOMIC_CAS | RNIC_ATOMIC_ADD | RNIC_ATOMIC_MASKED_CAS | RNIC_ATOMIC_MASKED_ADD,
	.atomic_size = 8,
	.max_sq_wqe = 1024,
	.max_rq_wqe = 512,
	.observed = {.atomics = RNIC_ATOMICS_HOST,
		.recv_enables = true,
		.patched_recvs = true,
		.masked_atomics = true,
		.fetch_group = 1,
		.flushes_enabled_only = true,
		.calc = PROGRAM_CALC}};

static struct rnic_caps caps;
static struct program *program;

static int reset(void **state)
{
	caps = best;
	return 0;
}

static void compile(const char *text, bool recycled)
{
	const struct program_source src = {.name = "test", .text = text, .len = strlen(text)};
	const struct program_target target = fit_target(&caps, recycled);
	char *messages = NULL;

	if (program_compile(&src, NULL, 0, &target, &program, &messages))
		fail_msg("%s", messages);
}

/* @words: of the refusal; NULL: it fits */
static void expect(const char *text, bool recycled, const char *words)
{
	char why[FIT_WHY] = "";
	int r;

	compile(text, recycled);
	r = fit_check(program, recycled, &caps, why);
	program_free(program);
	assert_int_equal(r, words ? -EOPNOTSUPP : 0);
	if (words && !strstr(why, words))
		fail_msg("\"%s\" does not say \"%s\"", why, words);
}

static void all_of_it(void **state)
{
	for (unsigned recycled = 0; recycled < 2; recycled++) {
		expect(plain, recycled, NULL);
		expect(counts, recycled, NULL);
		expect(patches, recycled, NULL);
	}
}

static void wrong_atomics(void **state)
{
	caps.observed.atomics = RNIC_ATOMICS_WRONG;
	expect(plain, false, NULL);
	expect(counts, false, "atomics, which do not work");
}

/* They cost a copy */
static void swapped_old_values(void **state)
{
	unsigned copies;

	compile(counts, false);
	copies = program->image->n_copy;
	program_free(program);
	caps.observed.atomics = RNIC_ATOMICS_SWAPPED;
	assert_true(fit_target(&caps, false).swapped_old);
	compile(counts, false);
	assert_int_equal(program->image->n_copy, copies + 1);
	program_free(program);
	expect(counts, false, NULL);
}

/* What does not work as a program takes it, is none: a sum of f64 is for nobody */
static void some_calc(void **state)
{
	assert_int_equal(fit_target(&caps, false).calc, PROGRAM_CALC);
	caps.observed.calc = 1 << WQE_CALC_ADD_F64 | 1 << WQE_CALC_AND;
	assert_int_equal(fit_target(&caps, false).calc, 1 << WQE_CALC_AND);
	assert_int_equal(fit_cpu_target().calc, PROGRAM_CALC);
}

static void no_masked_atomics(void **state)
{
	caps.observed.masked_atomics = false;
	assert_false(fit_target(&caps, false).masked_atomics);
	expect(counts, false, NULL);
	expect(counts, true, "no masked fetch-and-add, without which no chain can be recycled");
	caps = best;
	caps.atomic_ops = RNIC_ATOMIC_CAS | RNIC_ATOMIC_ADD;
	expect(counts, true, "no masked fetch-and-add");
}

static void no_recv_enable(void **state)
{
	caps.observed.recv_enables = false;
	expect(counts, false, NULL);
	expect(counts, true, "RECV_EN does not work");
}

static void short_wqes(void **state)
{
	caps.max_sq_wqe = 256;
	assert_int_equal(fit_target(&caps, false).max_sge, 14);
	assert_int_equal(fit_target(&caps, false).pad_wqebbs, 4);
	caps.max_sq_wqe = 1024;
	assert_int_equal(fit_target(&caps, false).pad_wqebbs, CHAIN_LONGEST_PAD);
	caps.max_sq_wqe = 256;
	expect(counts, false, NULL);
	expect(counts, true, "no send WQEs of 512 bytes");
	expect(gathers, false, "line 4 needs 15 data segments in a work request, the device can only do 14");
	caps.max_sq_wqe = 272;
	expect(gathers, false, NULL);
}

static void groups(void **state)
{
	caps.observed.fetch_group = 4;
	assert_int_equal(fit_target(&caps, false).fetch_group, 4);
	expect(patches, false, NULL);
	for (unsigned i = 0; i < 3; i++) {
		static const unsigned others[] = {0, 3, 2 * CHAIN_MAX_GROUP};

		caps.observed.fetch_group = others[i];
		assert_int_equal(fit_group(&caps), 0);
		expect(plain, false, NULL);
		expect(patches, false, "the device fetches");
	}
}

/* A ring that renews itself has its indices where the direct form of conditions has operands */
static void unchecked_indices(void **state)
{
	assert_false(fit_target(&caps, false).ignores_index);
	caps.observed.unchecked_wqes = true;
	assert_true(fit_target(&caps, false).ignores_index);
	assert_false(fit_target(&caps, true).ignores_index);
	assert_true(fit_target(&caps, false).overlap);
	assert_true(fit_target(&caps, true).overlap);
	assert_false(fit_cpu_target().overlap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(all_of_it, reset),
		cmocka_unit_test_setup(wrong_atomics, reset),
		cmocka_unit_test_setup(swapped_old_values, reset), cmocka_unit_test_setup(some_calc, reset),
		cmocka_unit_test_setup(no_masked_atomics, reset),
		cmocka_unit_test_setup(no_recv_enable, reset), cmocka_unit_test_setup(short_wqes, reset),
		cmocka_unit_test_setup(groups, reset), cmocka_unit_test_setup(unchecked_indices, reset)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
