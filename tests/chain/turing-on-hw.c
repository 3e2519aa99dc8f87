/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Turing machine that the emulated silicon runs alone, index check on. The reference is the machine in plain C.
 */
#include "tests/chain/turing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS = 60 };
#else
enum { SEEDS = 1000 };
#endif

static const char *const busy_beaver_4 = "1RB1LB_1LA0LC_1RH1LD_1RD0RA";

struct reference {
	uint8_t tape[TURING_CELLS];
	uint64_t steps;
};

static void refer(struct reference *r, const char *rules, uint64_t most)
{
	unsigned x = TURING_START, q = 0, states = (unsigned)(strlen(rules) + 1) / 7;

	memset(r, 0, sizeof *r);
	while (q < states && r->steps < most) {
		const char *rule = rules + q * 7 + r->tape[x] * 3;

		r->tape[x] = (uint8_t)(rule[0] - '0');
		x += rule[1] == 'R' ? 1 : -1;
		q = (unsigned)(rule[2] - 'A');
		r->steps++;
	}
}

static void run(
	const char *rules, uint64_t seed, enum turing_form form, uint32_t wqebbs, const struct reference *ref)
{
	struct hw_config cfg = {.seed = seed};
	struct turing t;
	char why[400];

	turing_open(&t, &cfg, rules, form, wqebbs);
	turing_start(&t);
	rig_run(&t.rig);
	if (!turing_healthy(&t, why, sizeof why))
		fail_msg("seed %lu: %s", (unsigned long)seed, why);
	for (unsigned x = 1; x < TURING_CELLS - 1; x++)
		if (turing_cell(&t, x) != ref->tape[x])
			fail_msg("seed %lu: cell %u", (unsigned long)seed, x);
	assert_int_equal(turing_steps(&t), ref->steps);
	turing_close(&t);
}

static void four_states_halt(void **state)
{
	struct reference *ref = malloc(sizeof *ref);

	(void)state;
	assert_non_null(ref);
	refer(ref, busy_beaver_4, 1000);
	assert_int_equal(ref->steps, 107);
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		run(busy_beaver_4, seed, seed & 1, seed & 2 ? 256 : 512, ref);
	free(ref);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_states_halt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
