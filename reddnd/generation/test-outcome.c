/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/wqe.h"
#include "reddnd/generation/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SLOTS = 4 };

static struct program *compile(const char *text)
{
	const struct program_source source = {.name = "x.rdn", .text = text, .len = strlen(text)};
	const struct program_target target = {.masked_atomics = true};
	struct program *p = NULL;
	char *messages = NULL;

	assert_int_equal(program_compile(&source, NULL, 0, &target, &p, &messages), 0);
	return p;
}

/* Armed rings, with keys and addresses of no memory */
static void arm(struct chain_env *env, const struct program *p)
{
	const struct chain_image *img = p->image;

	*env = (struct chain_env){.slots = SLOTS, .slot_count = 1, .slot_size = 64};
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].ring_wqebbs = chain_ring_wqebbs(&img->queue[q], SLOTS);
		env->queue[q].ring = calloc(env->queue[q].ring_wqebbs, CHAIN_WQEBB);
	}
	env->scratch.mem = calloc(SLOTS, img->scratch_size + 8);
	chain_arm(p->writer, env, 0, SLOTS);
}

static void disarm(struct chain_env *env, const struct chain_image *img)
{
	for (unsigned q = 0; q < img->nqueues; q++)
		free(env->queue[q].ring);
	free(env->scratch.mem);
}

static void test_conditional(void **state)
{
	struct program *p = compile("program x\n"
				    "arg a : u48\n"
				    "if a == 5 {\n"
				    "  write 1 as be64 -> slot @ 0\n"
				    "}\n"
				    "write_imm 2 as be64 -> slot @ 8\n");
	struct outcome_plan plan;
	struct chain_env env;
	struct outcome o;
	unsigned steps = 0;

	outcome_plan(&plan, p);
	for (unsigned q = 0; q < p->image->nqueues; q++)
		for (uint32_t w = 0; w < p->image->queue[q].wqebbs; w++)
			steps += p->image->queue[q].starts[w];
	assert_int_equal(plan.longest, 16);
	assert_int_equal(plan.wqes, steps);
	assert_int_equal(plan.wqes, p->desc->nsteps);
	assert_true(plan.conditional);
	assert_int_equal(plan.nmessages, 2);
	arm(&env, p);
	o = outcome_read(&plan, env.queue[0].ring, 2);
	assert_false(o.hit);
	assert_int_equal(o.bytes, 8);
	/* the chain gives the WRITE of slot 2 its opcode */
	for (unsigned i = 0; i < plan.nmessages; i++)
		if (plan.messages[i].conditional)
			env.queue[0].ring[(2 * plan.reply_wqebbs + plan.messages[i].wqebb) * CHAIN_WQEBB +
					  WQE_OPCODE] = WQE_OP_WRITE;
	o = outcome_read(&plan, env.queue[0].ring, 2);
	assert_true(o.hit);
	assert_int_equal(o.bytes, 16);
	assert_false(outcome_read(&plan, env.queue[0].ring, 3).hit);
	disarm(&env, p->image);
	program_free(p);
}

static void test_unconditional(void **state)
{
	struct program *p = compile("program x\nwrite_imm 2 as be64 -> slot @ 8\n");
	struct outcome_plan plan;
	struct chain_env env;

	outcome_plan(&plan, p);
	assert_false(plan.conditional);
	arm(&env, p);
	assert_false(outcome_read(&plan, env.queue[0].ring, 0).hit);
	assert_int_equal(outcome_read(&plan, env.queue[0].ring, 0).bytes, 8);
	disarm(&env, p->image);
	program_free(p);
}

/* The last answer, without another one, is a miss */
static void test_answers(void **state)
{
	struct program *p = compile("program x\n"
				    "arg a : u48\n"
				    "if a == 5 {\n"
				    "  write_imm 1 as be64 -> slot @ 0\n"
				    "} else {\n"
				    "  write_imm 2 as be32 -> slot @ 0\n"
				    "}\n");
	struct outcome_plan plan;
	struct chain_env env;
	struct outcome o;

	outcome_plan(&plan, p);
	assert_true(plan.conditional);
	assert_int_equal(plan.nmessages, 2);
	assert_true(plan.messages[0].conditional);
	assert_false(plan.messages[1].conditional);
	arm(&env, p);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *opcode = env.queue[0].ring + plan.messages[i].wqebb * CHAIN_WQEBB + WQE_OPCODE;

		*opcode = WQE_OP_WRITE_IMM;
		o = outcome_read(&plan, env.queue[0].ring, 0);
		*opcode = WQE_OP_NOP;
		assert_int_equal(o.hit, i == 0);
		assert_int_equal(o.bytes, i == 0 ? 8 : 4);
	}
	disarm(&env, p->image);
	program_free(p);
}

/* An answer by SEND, of which a request sends one: the longest is that of a record */
static void test_sends(void **state)
{
	struct program *p = compile(
		"program x\n"
		"region buckets, heap, live\n"
		"struct bucket { len : be24, off : be40 }\n"
		"arg a : u48\n"
		"arg at : offset(4) in buckets\n"
		"arg number : be32\n"
		"read buckets @ at as bucket { len -> one.local[2].length, off -> one.local[2].addr }\n"
		"if a == 5 {\n"
		"  one: send live @ 0 as bytes 64, number, heap, 1 to 1000\n"
		"} else {\n"
		"  send live @ 0 as bytes 64, number\n"
		"}\n");
	struct outcome_plan plan;
	struct chain_env env;
	struct outcome o;

	outcome_plan(&plan, p);
	assert_int_equal(plan.longest, 64 + 4 + 1000);
	assert_int_equal(plan.nmessages, 2);
	arm(&env, p);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *wqe = env.queue[0].ring + plan.messages[i].wqebb * CHAIN_WQEBB;

		wqe[WQE_OPCODE] = WQE_OP_SEND;
		if (i == 0)
			wqe_put32(wqe + WQE_SEND_SGE + 2 * WQE_DS + WQE_SGE_LEN, 500);
		o = outcome_read(&plan, env.queue[0].ring, 0);
		wqe[WQE_OPCODE] = WQE_OP_NOP;
		assert_int_equal(o.hit, i == 0);
		assert_int_equal(o.bytes, i == 0 ? 64 + 4 + 500 : 64 + 4);
	}
	disarm(&env, p->image);
	program_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditional),
		cmocka_unit_test(test_unconditional),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
