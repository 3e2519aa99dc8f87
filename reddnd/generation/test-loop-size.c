/* SPDX-License-Identifier: BSD-2-Clause */
/* Paces of loops: over all lengths of a lap, and rates from 1 to the highest that a configuration can have.
 */
#include "reddnd/generation/loop-size.h"
#include "reddnd/program/program.h"

#include <stdlib.h>

#include "tests/lib/cmocka.h"

enum { MOST_WQES = CHAIN_MAX_RING };

static struct program *program;
static struct chain_desc *loop;

static int make(void **state)
{
	program = calloc(1, sizeof(*program));
	loop = calloc(1, sizeof(*loop));
	if (!program || !loop)
		return -1;
	program->loop = loop;
	loop->nsteps = 7;
	program->loop_info.iterations = 2;
	return 0;
}

static int drop(void **state)
{
	free(loop);
	free(program);
	return 0;
}

/* @wqes of a lap, half of which a credit starts */
static void check_pace(uint32_t wqes, uint64_t rate)
{
	struct loop_pace pace;
	struct loop_size size;

	program->loop_info.lap.wqes = wqes;
	pace = loop_pace_of(program, rate);
	assert_true(loop_size_of(program, rate, &size));

	/* not above the rate, unless that is less than a credit per second, and hardly below it */
	assert_true(pace.per_second >= 1);
	assert_true(pace.per_second == 1 || pace.per_second * wqes <= 2 * rate);
	assert_true((pace.per_second + 1) * wqes > 2 * rate);
	/* what it has ahead is used up in a twenty-fifth of a second, apart from the two that it needs to go
	 * on */
	assert_true(pace.ahead == 2 || pace.ahead * 25ull <= pace.per_second);
	/* there is room for all that are not used up, and those that replace them */
	assert_true(size.credits >= 2 * pace.ahead && (size.credits & (size.credits - 1)) == 0);
	assert_true(size.credits <= CHAIN_MAX_RING);
}

static void all_paces(void **state)
{
	for (uint32_t wqes = 1; wqes <= MOST_WQES; wqes += wqes < 300 ? 1 : 97)
		for (uint64_t rate = 1; rate <= 1ull << 40; rate = rate * 3 / 2 + 1)
			check_pace(wqes, rate);
}

static void shared_by_connections(void **state)
{
	const struct loop_pace pace = {.per_second = 1000, .ahead = 40};

	assert_int_equal(loop_pace_credits(&pace, 0, 1, 100), 40);
	assert_int_equal(loop_pace_credits(&pace, 30, 1, 100), 10);
	assert_int_equal(loop_pace_credits(&pace, 0, 4, 100), 10);
	assert_int_equal(loop_pace_credits(&pace, 40, 4, 100), 0); /* it had more when it was alone */
	assert_int_equal(loop_pace_credits(&pace, 0, 4, 3), 3);
	assert_int_equal(loop_pace_credits(&pace, 0, 16, 100), 2);
	assert_int_equal(loop_pace_credits(&pace, 0, 40, 100), 2); /* it needs two to go on */
}

static void wqes_of_iterations(void **state)
{
	program->loop_info.lap.wqes = 26;
	assert_int_equal(program_loop_wqes(program, 0), 0);
	assert_int_equal(program_loop_wqes(program, 1), 13);
	assert_int_equal(program_loop_wqes(program, 1000), 13000);
}

static void no_loop(void **state)
{
	struct program none = {0};
	struct loop_size size;

	assert_false(loop_size_of(&none, 1000, &size));
	assert_int_equal(program_loop_wqes(&none, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_paces),
		cmocka_unit_test(shared_by_connections),
		cmocka_unit_test(wqes_of_iterations),
		cmocka_unit_test(no_loop),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
