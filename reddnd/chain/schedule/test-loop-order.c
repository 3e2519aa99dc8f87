/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barriers that an iteration needs, and no others; each result is laid out as a ring too, whose proof
 * (lap-check.h) knows nothing of how they were found. Then what a chain around the loop must wait for.
 */
#include "reddnd/chain/schedule/loop-order.h"

#include "reddnd/chain/ring/endless.h"
#include "reddnd/chain/verify/order.h"
#include "tests/chain/assert-error.h"
#include "tests/lib/nomem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* clang-format off */
#define WORD(w, n) {.kind = CHAIN_AT_SCRATCH, .name = (w), .len = (n)}
#define PART(w, at, n) {.kind = CHAIN_AT_SCRATCH, .name = (w), .from = (at), .len = (n)}
#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define ADDRESS(step) {.kind = CHAIN_AT_FIELD, .name = (step), .field = CHAIN_F_REMOTE_ADDR, .from = 7, .len = 1}
#define LENGTH(step, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = CHAIN_F_LOCAL_LEN, .from = 4 - (n), .len = (n)}

/* By which it is called and left */
#define GATE {.label = "gate", .verb = CHAIN_WAIT, .flags = CHAIN_DORMANT}
#define LEAVE {.label = "leave", .verb = CHAIN_SEND_EN, .flags = CHAIN_DORMANT, .target = 1, .upto = CHAIN_UPTO_END}
#define READ(name, from, to) {.label = (name), .verb = CHAIN_READ, .remote = from, .local = {to}}
#define WRITE(name, from, to) {.label = (name), .verb = CHAIN_WRITE, .remote = to, .local = {from}}
#define ADD(name, w) {.label = (name), .verb = CHAIN_FETCH_ADD, .add = 1, .remote = WORD(w, 8)}
/* clang-format on */

static const struct chain_queue_desc queue = {"loop", 0};
static const struct chain_word words[] = {{"a", 8, NULL}, {"b", 8, NULL}};

/* What an iteration has become: r W a for READ, WRITE, atomic, F before one that is fenced; w a WAIT, e a
 * SEND_EN, - the two outer ones */
static void shape(const struct chain_desc *d, char *text)
{
	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];

		if (st->flags & CHAIN_FENCE)
			*text++ = 'F';
		if (s == 0 || s + 1 == d->nsteps)
			*text++ = '-';
		else if (st->verb == CHAIN_WAIT || st->verb == CHAIN_SEND_EN)
			*text++ = st->verb == CHAIN_WAIT ? 'w' : 'e';
		else
			*text++ = st->verb == CHAIN_READ ? 'r' : st->verb == CHAIN_WRITE ? 'W' : 'a';
	}
	*text = '\0';
}

static void expect(const struct chain_step *steps, unsigned n, const char *wanted)
{
	const struct chain_desc d = {.name = "loop",
		.queues = &queue,
		.nqueues = 1,
		.words = words,
		.nwords = 2,
		.nregions = 2,
		.steps = steps,
		.nsteps = n};
	struct ring_image *image = NULL;
	struct chain_loop_info info;
	struct chain_desc *out = NULL;
	struct chain_error err;
	char text[64];
	uint32_t ring;

	if (chain_loop_order(&d, &out, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	shape(out, text);
	assert_string_equal(text, wanted);
	for (unsigned s = 1; s + 1 < out->nsteps; s++)
		assert_true(out->steps[s].why || out->steps[s].label);
	if (chain_loop_size(out, CHAIN_MAX_RING, &ring, &info, &err) ||
		chain_loop_new(&image, out, ring, out->nregions, &info, &err))
		fail_msg("not proven: %s", chain_error_name(err.code));
	ring_free(image);
	chain_loop_order_free(out);
}

#define EXPECT(wanted, ...)                                                                                  \
	do {                                                                                                 \
		const struct chain_step steps[] = {GATE, __VA_ARGS__, LEAVE};                                \
		expect(steps, sizeof(steps) / sizeof(steps[0]), wanted);                                     \
	} while (0)

static void test_data(void **state)
{
	/* nothing needs anything: the end of the iteration alone */
	EXPECT("-rrwe-", READ("x", REGION(0, 0, 8), WORD("a", 8)), READ("y", REGION(0, 0, 8), WORD("b", 8)));
	/* what a READ brings is fenced for, and once for all before it */
	EXPECT("-rrFaawe-", READ("x", REGION(0, 0, 8), WORD("a", 8)),
		READ("y", REGION(0, 8, 8), WORD("b", 8)), ADD("m", "a"), ADD("n", "b"));
	EXPECT("-rFWwe-", READ("x", REGION(0, 0, 8), WORD("a", 8)),
		WRITE("y", WORD("a", 8), REGION(1, 0, 8)));
	/* other bytes of the same word */
	EXPECT("-rrwe-", READ("x", REGION(0, 0, 4), PART("a", 0, 4)),
		READ("y", REGION(0, 0, 4), PART("a", 4, 4)));
	/* atomics follow each other by themselves, and so do WRITEs and what reads behind them */
	EXPECT("-aawe-", ADD("m", "a"), ADD("n", "a"));
	EXPECT("-Wrwe-", WRITE("x", WORD("a", 8), REGION(0, 0, 8)), READ("y", REGION(0, 0, 8), WORD("b", 8)));
	/* a WRITE still takes the word that a READ is to replace: no fence knows of that */
	EXPECT("-Wwrwe-", WRITE("x", WORD("a", 8), REGION(1, 0, 8)),
		READ("y", REGION(0, 0, 8), WORD("a", 8)));
	/* two regions are different memory */
	EXPECT("-rWwe-", READ("x", REGION(0, 0, 8), WORD("a", 8)), WRITE("y", WORD("b", 8), REGION(1, 0, 8)));
	EXPECT("-rFWwe-", READ("x", REGION(0, 0, 8), WORD("a", 8)),
		WRITE("y", WORD("b", 8), REGION(0, 4, 8)));
}

static void test_patches(void **state)
{
	/* patched and so fetched late; and it may be anywhere in its region */
	EXPECT("-rwerwe-", READ("x", REGION(0, 0, 1), ADDRESS("y")),
		READ("y", REGION(1, 0, 8), WORD("a", 8)));
	EXPECT("-rrweFWwe-", READ("x", REGION(0, 0, 1), ADDRESS("z")),
		READ("y", REGION(1, 64, 8), WORD("a", 8)), WRITE("z", WORD("b", 8), REGION(1, 0, 8)));
	/* one barrier for two, as late as can be */
	EXPECT("-rrwerrwe-", READ("x", REGION(0, 0, 1), ADDRESS("v")),
		READ("y", REGION(0, 1, 1), ADDRESS("w")), READ("v", REGION(1, 0, 8), WORD("a", 8)),
		READ("w", REGION(1, 0, 8), WORD("b", 8)));
}

/* Of a WRITE whose length is patched, everything behind where it begins */
static void test_lengths(void **state)
{
	EXPECT("-rrweFWwe-", READ("x", REGION(0, 0, 3), LENGTH("z", 3)),
		READ("y", REGION(1, 64, 8), WORD("a", 8)), WRITE("z", REGION(0, 32, 8), REGION(1, 0, 8)));
	EXPECT("-rrweWwe-", READ("x", REGION(0, 0, 3), LENGTH("z", 3)),
		READ("y", REGION(1, 64, 8), WORD("a", 8)), WRITE("z", REGION(0, 32, 8), REGION(1, 72, 8)));
	/* the barrier before it is for the later one of the two, whose bytes it may take */
	EXPECT("-rWweWwe-", READ("x", REGION(0, 0, 3), LENGTH("z", 3)),
		WRITE("y", WORD("a", 8), REGION(0, 512, 8)), WRITE("z", REGION(0, 32, 8), REGION(1, 0, 8)));
}

static int order(const struct chain_step *steps, unsigned n, struct chain_error *err)
{
	const struct chain_desc d = {.name = "loop",
		.queues = &queue,
		.nqueues = 1,
		.words = words,
		.nwords = 2,
		.nregions = 2,
		.steps = steps,
		.nsteps = n};
	struct chain_desc *out = NULL;
	int r = chain_loop_order(&d, &out, err);

	chain_loop_order_free(out);
	return r;
}

static void test_refused(void **state)
{
	const struct chain_step idle[] = {GATE, {.label = "x", .verb = CHAIN_NOP}, LEAVE};
	const struct chain_step busy[] = {GATE, ADD("x", "a"), LEAVE};
	static struct chain_step many[CHAIN_MAX_STEPS];
	struct chain_error err;

	assert_int_equal(order(idle, 3, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(LOOP_IDLE, NO_STEP, NO_STEP));
	for (unsigned s = 0; s < CHAIN_MAX_STEPS; s++)
		many[s] = busy[s == 0 ? 0 : s + 1 == CHAIN_MAX_STEPS ? 2 : 1];
	assert_int_equal(order(many, CHAIN_MAX_STEPS, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(BARRIERS, NO_STEP, NO_STEP, NUMBERS(CHAIN_MAX_STEPS, 512)));
	NOMEM_TRY(-ENOMEM, order(busy, 3, &err));
	assert_int_equal(nomem_result, 0);
}

/* A chain that calls: what the loop does in a region is done by the step that calls it, and by none that is
 * not aware of the end */
static int around(bool waits, struct chain_error *err)
{
	static const struct chain_queue_desc queues[] = {{"reply", 2}, {"code", 0}, {"call", 0}};
	static const uint8_t init[8];
	const struct chain_step iteration[] = {GATE, WRITE("inside", WORD("a", 8), REGION(0, 0, 8)), LEAVE};
	const struct chain_region regions[] = {{.name = "data", .size = 64, .flags = CHAIN_WRITABLE},
		{.name = "shared", .size = 8, .flags = CHAIN_WRITABLE}};
	const struct chain_desc loop = {.name = "loop",
		.queues = &queue,
		.nqueues = 1,
		.words = words,
		.nwords = 1,
		.regions = regions,
		.nregions = 2,
		.steps = iteration,
		.nsteps = 3};
	struct chain_step steps[9];
	unsigned n = 0;

	steps[n++] = (struct chain_step){.queue = 0, .verb = CHAIN_WAIT};
	steps[n++] =
		(struct chain_step){.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END};
	steps[n++] =
		(struct chain_step){.queue = 1, .verb = CHAIN_SEND_EN, .target = 2, .upto = CHAIN_UPTO_END};
	steps[n++] = (struct chain_step){
		.label = "over", .queue = 2, .verb = CHAIN_NOP, .flags = CHAIN_CALL | CHAIN_SIGNALLED};
	if (waits)
		steps[n++] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "over"};
	steps[n++] = (struct chain_step){.label = "after",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(0, 8, 8),
		.local = {WORD("a", 8)}};
	steps[n++] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "after"};
	steps[n++] = (struct chain_step){
		.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD};
	steps[n++] = (struct chain_step){.queue = 0,
		.verb = CHAIN_WRITE_IMM,
		.flags = CHAIN_SIGNALLED,
		.remote = {.kind = CHAIN_AT_SLOT},
		.local = {REGION(1, 0, 8)}};
	return chain_check_order(&(struct chain_desc){.name = "around",
					 .queues = queues,
					 .nqueues = 3,
					 .words = words,
					 .nwords = 1,
					 .regions = regions,
					 .nregions = 2,
					 .steps = steps,
					 .nsteps = n,
					 .loop = &loop,
					 .shared = 1,
					 .shared_init = init},
		err);
}

static void test_around(void **state)
{
	struct chain_error err;

	assert_int_equal(around(false, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(READ_AND_WRITE, 3, 4, LABELS("over", "after")));
	if (around(true, &err))
		fail_msg("%s", chain_error_name(err.code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_patches),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
