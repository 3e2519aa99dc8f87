/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "w", .from = (at), .len = (n)}
#define REGION(i, n) {.kind = CHAIN_AT_REGION, .index = (i), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define SLOT {.kind = CHAIN_AT_SLOT}

/* An if: look, compare, decide, then the reply. Queue 2 counts requests beside it. */
enum { HEAD, NEXT, LOOK, MATCH, DECIDE, DECIDED, COUNTED, ANSWER, HEAD2, NEXT2, COUNT, HIT, DONE, STEPS };
static const struct chain_step good[STEPS] = {
	[HEAD] = {.queue = 1, .verb = CHAIN_WAIT},
	[NEXT] = {.label = "next", .queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_NEXT_HEAD},
	[LOOK] = {.label = "look", .queue = 1, .verb = CHAIN_READ, .remote = REGION(0, 0),
		  .local = {WORD(0, 7), FIELD("hit", CHAIN_F_LOCAL_ADDR, 3, 5)}},
	[MATCH] = {.label = "match", .queue = 1, .verb = CHAIN_CAS, .flags = CHAIN_FENCE, .remote = WORD(0, 0)},
	[DECIDE] = {.label = "decide", .queue = 1, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
		    .remote = WORD(7, 0), .local = {FIELD("hit", CHAIN_F_OPCODE, 0, 1)}},
	[DECIDED] = {.label = "decided", .queue = 1, .verb = CHAIN_WAIT, .until = "decide"},
	[COUNTED] = {.label = "counted", .queue = 1, .verb = CHAIN_WAIT, .until = "count"},
	[ANSWER] = {.label = "answer", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_END},
	[HEAD2] = {.queue = 2, .verb = CHAIN_WAIT},
	[NEXT2] = {.queue = 2, .verb = CHAIN_SEND_EN, .target = 2, .upto = CHAIN_UPTO_NEXT_HEAD},
	[COUNT] = {.label = "count", .queue = 2, .verb = CHAIN_FETCH_ADD, .flags = CHAIN_SIGNALLED, .add = 1,
		   .remote = WORD(16, 0)},
	[HIT] = {.label = "hit", .queue = 0, .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, .remote = SLOT,
		 .local = {REGION(1, 1)}},
	[DONE] = {.label = "done", .queue = 0, .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED, .remote = SLOT,
		  .local = {WORD(16, 8)}},
};
/* clang-format on */

static const struct chain_queue_desc queues[] = {{"reply", 0}, {"code", 2}, {"count", 2}};
static const struct chain_word words[] = {{"w", 32, NULL}};
static const struct chain_place args[] = {
	{.kind = CHAIN_AT_FIELD, .name = "match", .field = CHAIN_F_COMPARE, .from = 1, .len = 7}};

struct wrong {
	const char *why;
	unsigned step; /* replaced by */
	struct chain_step by;
};

static int check(const struct chain_step *steps, char err[CHAIN_ERR])
{
	return chain_check_order(&(struct chain_desc){.name = "if",
					 .queues = queues,
					 .nqueues = 3,
					 .words = words,
					 .nwords = 1,
					 .nregions = 2,
					 .steps = steps,
					 .nsteps = STEPS,
					 .args = args,
					 .nargs = steps[MATCH].verb == CHAIN_CAS},
		err);
}

static void the_right_order(void **state)
{
	char err[CHAIN_ERR];

	(void)state;
	if (check(good, err))
		fail_msg("refused: %s", err);
}

static void assert_wrong(const struct chain_step *steps, const char *why)
{
	char err[CHAIN_ERR];

	assert_int_equal(check(steps, err), CHAIN_REFUSED);
	if (!strstr(err, why))
		fail_msg("\"%s\" does not say \"%s\"", err, why);
}

/* Takes one thing away at a time */
static void nothing_can_be_left_out(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	memcpy(s, good, sizeof s);
	s[MATCH].flags = 0;
	assert_wrong(s, "step \"look\" and step \"match\" are not ordered, but both write the same bytes");

	memcpy(s, good, sizeof s);
	s[DECIDE].flags = CHAIN_SIGNALLED;
	assert_wrong(
		s, "step \"match\" and step \"decide\" are not ordered, but one reads and the other writes");

	memcpy(s, good, sizeof s);
	s[DECIDED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_wrong(s, "step \"decide\" writes into step \"hit\", which may have been fetched by then");

	/* the reply enabled from the other queue, which never heard of the decision */
	memcpy(s, good, sizeof s);
	s[ANSWER] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[COUNT] = good[ANSWER];
	s[COUNT].queue = 2;
	s[COUNTED] = s[ANSWER];
	assert_wrong(s, "step \"look\" writes into step \"hit\", which may have been fetched by then");

	memcpy(s, good, sizeof s);
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_wrong(s, "step \"count\" and step \"done\" are not ordered");

	/* a step that runs on after the reply, and a reply whose end nobody can see */
	memcpy(s, good, sizeof s);
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[DONE].local[0] = (struct chain_place)WORD(24, 8);
	assert_wrong(s, "step 8 (wait) may still be at work when step \"done\" has completed");

	memcpy(s, good, sizeof s);
	s[DONE].flags = 0;
	assert_wrong(s, "step \"done\" ends the reply and must be signalled");
}

/* A patch of a WQE in the same queue: enabled together with it, or by a SEND_EN after it completed */
static void patching_ahead_in_one_queue(void **state)
{
	struct chain_step s[STEPS];
	char err[CHAIN_ERR];

	(void)state;
	memcpy(s, good, sizeof s);
	s[LOOK].local[1] = (struct chain_place)FIELD("decide", CHAIN_F_REMOTE_ADDR, 7, 1);
	assert_wrong(s, "step \"look\" writes into step \"decide\", which may have been fetched by then");

	/* look, wait for it, and only then let the step it patched be fetched */
	s[NEXT].upto = CHAIN_UPTO_STEP;
	s[NEXT].through = "then";
	s[LOOK].flags = CHAIN_SIGNALLED;
	s[LOOK].local[1] = (struct chain_place)FIELD("walk", CHAIN_F_REMOTE_ADDR, 3, 5);
	s[MATCH] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "look"};
	s[DECIDE] = (struct chain_step){.label = "then",
		.queue = 1,
		.verb = CHAIN_SEND_EN,
		.target = 1,
		.upto = CHAIN_UPTO_NEXT_HEAD};
	s[DECIDED] = (struct chain_step){.label = "walk",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(0, 0),
		.local = {WORD(24, 8)}};
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "walk"};
	s[HIT] = (struct chain_step){.queue = 0, .verb = CHAIN_WAIT, .until = "count"};
	if (check(s, err))
		fail_msg("refused: %s", err);
	s[MATCH].verb = CHAIN_NOP;
	assert_wrong(s, "step \"look\" writes into step \"walk\", which may have been fetched by then");
}

static void two_queues_that_enable_a_third(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	memcpy(s, good, sizeof s);
	s[COUNT] = good[ANSWER];
	s[COUNT].queue = 2;
	s[ANSWER] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[COUNTED] = (struct chain_step){
		.label = "early", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "hit"};
	s[LOOK].local[1] = s[DECIDE].local[0] = (struct chain_place)WORD(24, 1);
	assert_wrong(s, "step \"early\" and step \"answer\" enable queue \"reply\", and either may be first");
}

static void the_request_is_a_writer_too(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	/* what the request fills is written by the other queue as well */
	memcpy(s, good, sizeof s);
	s[COUNT].remote = (struct chain_place)FIELD("match", CHAIN_F_COMPARE, 0, 0);
	assert_wrong(s, "step \"count\" writes into step \"match\", which may have been fetched by then");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_order),
		cmocka_unit_test(nothing_can_be_left_out),
		cmocka_unit_test(patching_ahead_in_one_queue),
		cmocka_unit_test(two_queues_that_enable_a_third),
		cmocka_unit_test(the_request_is_a_writer_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
