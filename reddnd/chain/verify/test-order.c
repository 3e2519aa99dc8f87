/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/order.h"

#include "tests/chain/assert-error.h"
#include "tests/lib/nomem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* clang-format off */
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "w", .from = (at), .len = (n)}
#define REGION(i, n) {.kind = CHAIN_AT_REGION, .index = (i), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define SLOT {.kind = CHAIN_AT_SLOT}

/* An if: look, compare, decide, then the reply. Queue 2 counts requests beside it, and ends the reply. */
enum { HEAD, NEXT, LOOK, MATCH, DECIDE, DECIDED, COUNTED, ANSWER, HEAD2, NEXT2, COUNT, TELL, HIT, DONE, STEPS };
static const struct chain_step good[STEPS] = {
	[HEAD] = {.queue = 0, .verb = CHAIN_WAIT},
	[NEXT] = {.label = "next", .queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
	[LOOK] = {.label = "look", .queue = 1, .verb = CHAIN_READ, .remote = REGION(0, 0),
		  .local = {WORD(0, 7), FIELD("hit", CHAIN_F_LOCAL_ADDR, 3, 5)}},
	[MATCH] = {.label = "match", .queue = 1, .verb = CHAIN_CAS, .flags = CHAIN_FENCE, .remote = WORD(0, 0)},
	[DECIDE] = {.label = "decide", .queue = 1, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
		    .remote = WORD(7, 0), .local = {FIELD("hit", CHAIN_F_OPCODE, 0, 1)}},
	[DECIDED] = {.label = "decided", .queue = 1, .verb = CHAIN_WAIT, .until = "decide"},
	[COUNTED] = {.label = "counted", .queue = 1, .verb = CHAIN_WAIT, .until = "tell"},
	[ANSWER] = {.label = "answer", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD},
	[HEAD2] = {.queue = 2, .verb = CHAIN_WAIT},
	[NEXT2] = {.queue = 0, .verb = CHAIN_SEND_EN, .target = 2, .upto = CHAIN_UPTO_END},
	[COUNT] = {.label = "count", .queue = 2, .verb = CHAIN_FETCH_ADD, .add = 1, .remote = WORD(16, 0)},
	[TELL] = {.label = "tell", .queue = 2, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
		  .remote = WORD(31, 0), .local = {FIELD("done", CHAIN_F_OPCODE, 0, 1)}, .line = 7},
	[HIT] = {.label = "hit", .queue = 0, .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, .remote = SLOT,
		 .local = {REGION(1, 1)}},
	[DONE] = {.label = "done", .queue = 0, .verb = CHAIN_WRITE_IMM, .flags = CHAIN_DORMANT | CHAIN_SIGNALLED,
		  .remote = SLOT, .local = {WORD(16, 8)}},
};
/* clang-format on */

static const struct chain_queue_desc queues[] = {{"reply", 3}, {"code", 0}, {"count", 0}};
static const struct chain_queue_desc two_queues[] = {{"reply", 2}, {"code", 0}};
static const struct chain_word words[] = {{"w", 48, NULL}};
static const struct chain_place args[] = {
	{.kind = CHAIN_AT_FIELD, .name = "match", .field = CHAIN_F_COMPARE, .from = 1, .len = 7}};

/* A chain of these steps, with an argument if one can take it */
static struct chain_desc chain_of(const struct chain_step *steps)
{
	return (struct chain_desc){.name = "if",
		.queues = queues,
		.nqueues = 3,
		.words = words,
		.nwords = 1,
		.nregions = 2,
		.steps = steps,
		.nsteps = STEPS,
		.args = args,
		.nargs = steps[MATCH].verb == CHAIN_CAS};
}

static int check(const struct chain_step *steps, struct chain_error *err)
{
	const struct chain_desc d = chain_of(steps);

	return chain_check_order(&d, err);
}

static void the_right_order(void **state)
{
	struct chain_error err;

	(void)state;
	if (check(good, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
}

static void assert_wrong(const struct chain_step *steps, struct fault why)
{
	struct chain_error err;

	assert_int_equal(check(steps, &err), CHAIN_REFUSED);
	assert_fault(&err, why);
}

/* Takes one thing away at a time */
static void nothing_can_be_left_out(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	memcpy(s, good, sizeof(s));
	s[MATCH].flags = 0;
	assert_wrong(s, WRONG(BOTH_WRITE, LOOK, MATCH, LINES(0)));

	memcpy(s, good, sizeof(s));
	s[DECIDE].flags = CHAIN_SIGNALLED;
	assert_wrong(s, WRONG(READ_AND_WRITE, MATCH, DECIDE, LINES(0)));

	memcpy(s, good, sizeof(s));
	s[DECIDED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_wrong(s, WRONG(FETCHED_EARLY, DECIDE, HIT, LINES(0)));

	/* the reply enabled from the other queue, which never heard of the decision */
	memcpy(s, good, sizeof(s));
	s[ANSWER] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[COUNT] = good[ANSWER];
	s[COUNT].queue = 2;
	s[COUNTED] = s[ANSWER];
	assert_wrong(s, WRONG(FETCHED_EARLY, LOOK, HIT, LINES(0)));

	memcpy(s, good, sizeof(s));
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_wrong(s, WRONG(READ_AND_WRITE, COUNT, DONE, LINES(0)));

	/* a reply whose end nobody can see, and a step that runs on after it */
	memcpy(s, good, sizeof(s));
	s[DONE].flags = CHAIN_DORMANT;
	assert_wrong(s, WRONG(END_UNSIGNALLED, DONE, NO_STEP, LINES(0)));

	s[DONE].flags = CHAIN_SIGNALLED;
	s[DONE].local[0] = (struct chain_place)WORD(24, 4);
	s[TELL].local[0] = (struct chain_place)WORD(28, 1);
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_wrong(s, WRONG(END_EARLY, HEAD2, DONE, LINES(0), .verb = "wait"));
}

/* A WAIT ends with an error as well */
static void errors_do_not_lie(void **state)
{
	struct chain_step s[STEPS];
	struct chain_error err;

	(void)state;
	memcpy(s, good, sizeof(s));
	s[DONE].flags = CHAIN_SIGNALLED;
	assert_wrong(s, WRONG(FAILURE_HIDDEN, COUNT, DONE, .name = "count", LINES(0)));

	NOMEM_TRY(-ENOMEM, check(s, &err));
	assert_int_equal(nomem_result, CHAIN_REFUSED);

	memcpy(s, good, sizeof(s)); /* answered too early */
	s[TELL].flags = CHAIN_SIGNALLED;
	assert_wrong(s, WRONG(FAILURE_HIDDEN, COUNT, DONE, .name = "count", LINES(0)));

	memcpy(s, good, sizeof(s)); /* and by nobody at all */
	s[TELL].local[0] = (struct chain_place)WORD(28, 1);
	assert_wrong(s, WRONG(FAILURE_HIDDEN, COUNT, DONE, .name = "count", LINES(0)));

	memcpy(s, good, sizeof(s)); /* a first answer, before the one that was looked after */
	s[HIT].verb = CHAIN_WRITE_IMM;
	assert_wrong(s, WRONG(FAILURE_HIDDEN, COUNT, HIT, .name = "count", LINES(0)));
}

/* What others see, a region and the slot, is left alone when a step has failed in another queue */
static void no_effect_of_failures(void **state)
{
	struct chain_step s[STEPS];
	struct chain_error err;

	(void)state;
	memcpy(s, good, sizeof(s));
	s[DECIDE].local[0] = (struct chain_place)WORD(28, 1);
	s[HIT].flags = 0; /* it runs, whether or not the other queue has counted */
	s[HIT].local[0] = (struct chain_place)WORD(16, 8);
	s[LOOK].local[1] = (struct chain_place)WORD(40, 5);
	assert_int_equal(check(s, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(FAILURE_UNGUARDED, COUNT, HIT, .name = "count", LINES(0)));
	NOMEM_TRY(-ENOMEM, check(s, &err));
	assert_int_equal(nomem_result, CHAIN_REFUSED);

	memcpy(s, good, sizeof(s)); /* nor has the queue that decides about it */
	s[HIT].local[0] = (struct chain_place)WORD(16, 8);
	s[LOOK].local[1] = (struct chain_place)WORD(40, 5);
	assert_wrong(s, WRONG(FAILURE_ELSEWHERE, COUNT, HIT, .name = "code", LINES(0)));

	memcpy(s, good, sizeof(s)); /* the queue that counts decides about it, but before it has counted */
	s[COUNT] = good[TELL];
	s[COUNT].label = "count";
	s[COUNT].local[0] = (struct chain_place)FIELD("hit", CHAIN_F_OPCODE, 0, 1);
	s[TELL] = good[COUNT];
	s[TELL].label = "tell";
	s[TELL].flags = CHAIN_SIGNALLED;
	s[DECIDE].local[0] = (struct chain_place)FIELD("done", CHAIN_F_OPCODE, 0, 1);
	s[HIT].local[0] = (struct chain_place)WORD(16, 8);
	s[LOOK].local[1] = (struct chain_place)WORD(40, 5);
	assert_wrong(s, WRONG(FAILURE_UNGUARDED, TELL, HIT, .name = "count", LINES(0)));

	memcpy(s, good, sizeof(s)); /* a region gets what another queue of code may not have read */
	s[HEAD2].until = "decide";
	s[COUNT] = (struct chain_step){.label = "count",
		.queue = 2,
		.verb = CHAIN_WRITE,
		.remote = REGION(1, 0),
		.local = {WORD(0, 7)}};
	assert_wrong(s, WRONG(FAILURE_HEEDLESS, LOOK, COUNT, .name = "code", LINES(0)));
}

/* WQEs that are fetched in pairs: the patched one comes with the one before it. In fours one comes with the
 * WAIT for the request, whose bytes it takes. */
static void fetched_in_groups(void **state)
{
	struct chain_desc d = chain_of(good);
	struct chain_error err;

	(void)state;
	d.fetch_group = 2;
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_int_equal(err.code, CHAIN_E_FETCHED_EARLY);
	d.fetch_group = 4;
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_int_equal(err.code, CHAIN_E_FETCHED_BEFORE_REQUEST);
}

/* Of two queues that wake the answer, either may have done it alone */
static void two_queues_wake_the_answer(void **state)
{
	const struct chain_step s[] = {good[HEAD], good[NEXT], good[NEXT2], good[COUNT], good[TELL],
		good[COUNTED],
		{.label = "tell too",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = WORD(31, 0),
			.local = {FIELD("done", CHAIN_F_OPCODE, 0, 1)}},
		{.queue = 1, .verb = CHAIN_WAIT, .until = "tell too"}, good[ANSWER], good[DONE]};
	struct chain_desc d = {.name = "two",
		.queues = queues,
		.nqueues = 3,
		.words = words,
		.nwords = 1,
		.steps = s,
		.nsteps = sizeof(s) / sizeof(s[0])};
	struct chain_error err;

	(void)state;
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(FAILURE_HIDDEN, 3, 9, LABELS("count", "done"), .name = "count"));
}

/* A patch of a WQE in the same queue: enabled together with it, or by a SEND_EN after it completed */
static void patching_ahead_in_one_queue(void **state)
{
	struct chain_step s[STEPS];
	struct chain_error err;

	(void)state;
	memcpy(s, good, sizeof(s));
	s[LOOK].local[1] = (struct chain_place)FIELD("decide", CHAIN_F_REMOTE_ADDR, 7, 1);
	assert_wrong(s, WRONG(FETCHED_EARLY, LOOK, DECIDE, LINES(0)));

	/* look, wait for it, and only then let the step it patched be fetched */
	s[NEXT].upto = CHAIN_UPTO_STEP;
	s[NEXT].through = "then";
	s[LOOK].flags = CHAIN_SIGNALLED;
	s[LOOK].local[1] = (struct chain_place)FIELD("walk", CHAIN_F_REMOTE_ADDR, 3, 5);
	s[MATCH] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "look"};
	s[DECIDE] = (struct chain_step){
		.label = "then", .queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END};
	s[DECIDED] = (struct chain_step){.label = "walk",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(0, 0),
		.local = {WORD(40, 8)}};
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .until = "walk"};
	s[COUNT] = (struct chain_step){.queue = 2, .verb = CHAIN_NOP};
	s[TELL] =
		(struct chain_step){.label = "tell", .queue = 2, .verb = CHAIN_NOP, .flags = CHAIN_SIGNALLED};
	s[DONE].flags = CHAIN_SIGNALLED;
	s[HIT] = (struct chain_step){.queue = 0, .verb = CHAIN_WAIT, .until = "tell"};
	if (check(s, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	s[MATCH].verb = CHAIN_NOP;
	assert_wrong(s, WRONG(FETCHED_EARLY, LOOK, DECIDED, LABELS("look", "walk"), LINES(0)));
}

static void two_queues_that_enable_a_third(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	memcpy(s, good, sizeof(s));
	s[COUNT] = good[ANSWER];
	s[COUNT].queue = 2;
	s[ANSWER] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[COUNTED] = (struct chain_step){
		.label = "early", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "hit"};
	s[LOOK].local[1] = s[DECIDE].local[0] = (struct chain_place)WORD(24, 1);
	assert_wrong(
		s, WRONG(ENABLE_RACE, COUNTED, COUNT, LABELS("early", "answer"), .name = "reply", LINES(0)));
	/* the one that reaches less far comes later in the description */
	memcpy(s, good, sizeof(s));
	s[COUNT] = (struct chain_step){
		.label = "early", .queue = 2, .verb = CHAIN_SEND_EN, .target = 0, .through = "hit"};
	assert_wrong(s, WRONG(FETCHED_EARLY, LOOK, HIT, LINES(0)));
	s[COUNT].queue = 3;
	assert_wrong(s, WRONG(NO_QUEUE, COUNT, NO_STEP, NUMBERS(3, 3), LINES(0)));
}

/* Who has enabled an answer, if two can? And who has not? */
static void enabled_by_one_of_two(void **state)
{
	static const struct chain_step two[] = {
		{.queue = 0, .verb = CHAIN_WAIT},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 2, .upto = CHAIN_UPTO_END},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
		{.label = "early",
			.queue = 2,
			.verb = CHAIN_SEND_EN,
			.flags = CHAIN_SIGNALLED,
			.target = 0,
			.through = "hello"},
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = REGION(0, 0),
			.local = {WORD(0, 8)}},
		{.queue = 1, .verb = CHAIN_WAIT, .until = "look"},
		{.queue = 1, .verb = CHAIN_WAIT, .until = "early"},
		{.label = "late",
			.queue = 1,
			.verb = CHAIN_SEND_EN,
			.target = 0,
			.upto = CHAIN_UPTO_NEXT_HEAD},
		{.label = "hello", .verb = CHAIN_SEND, .local = {WORD(8, 8)}},
		{.label = "end",
			.verb = CHAIN_WRITE,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {WORD(8, 8)}},
	};
	static const struct chain_step other[] = {
		{.queue = 0, .verb = CHAIN_WAIT},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 2, .upto = CHAIN_UPTO_END},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
		{.label = "go",
			.queue = 2,
			.verb = CHAIN_SEND_EN,
			.flags = CHAIN_SIGNALLED,
			.target = 0,
			.upto = CHAIN_UPTO_NEXT_HEAD},
		{.queue = 1, .verb = CHAIN_WAIT, .until = "go"},
		{.label = "heard", .queue = 1, .verb = CHAIN_NOP, .flags = CHAIN_SIGNALLED},
		{.queue = 0, .verb = CHAIN_WAIT, .until = "heard"},
		{.label = "end",
			.verb = CHAIN_WRITE,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {WORD(8, 8)}},
	};
	struct chain_desc d = {.name = "two",
		.queues = queues,
		.nqueues = 3,
		.words = words,
		.nwords = 1,
		.nregions = 1,
		.steps = two,
		.nsteps = sizeof(two) / sizeof(two[0])};
	struct chain_error err;

	(void)state;
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(FAILURE_HIDDEN, 4, 8, LABELS("look", "hello"), .name = "code"));
	d.steps = other;
	d.nsteps = sizeof(other) / sizeof(other[0]);
	if (chain_check_order(&d, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
}

/* An answer vouches for all that comes before it in the description, and for nothing after it */
static void an_answer_before_the_end(void **state)
{
	enum { LOOKED = 3, HELLO, EARLY, MORE };
	static const struct chain_step ahead[] = {
		{.queue = 0, .verb = CHAIN_WAIT},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
		{.label = "look",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = REGION(0, 0),
			.local = {WORD(0, 8)}},
		[LOOKED] = {.queue = 1, .verb = CHAIN_WAIT, .until = "look"},
		[HELLO] = {.label = "hello", .verb = CHAIN_SEND, .local = {WORD(0, 8)}},
		[EARLY] = {.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "hello"},
		[MORE] = {.label = "more",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = REGION(0, 0),
			.local = {WORD(8, 8)}},
		{.queue = 1, .verb = CHAIN_WAIT, .until = "more"},
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD},
		{.label = "end",
			.verb = CHAIN_WRITE,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {WORD(8, 8)}},
	};
	struct chain_step s[sizeof(ahead) / sizeof(ahead[0])];
	struct chain_desc d = {.name = "ahead",
		.queues = two_queues,
		.nqueues = 2,
		.words = words,
		.nwords = 1,
		.nregions = 1,
		.steps = s,
		.nsteps = sizeof(ahead) / sizeof(ahead[0])};
	struct chain_error err;

	(void)state;
	memcpy(s, ahead, sizeof(s));
	if (chain_check_order(&d, &err))
		fail_msg("refused: %s", chain_error_name(err.code));

	s[HELLO].local[0] = (struct chain_place)WORD(16, 8);
	s[LOOKED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(FAILURE_HIDDEN, 2, 4, LABELS("look", "hello"), .name = "code"));

	memcpy(s, ahead, sizeof(s));
	s[HELLO] = ahead[EARLY];
	s[EARLY] = ahead[MORE];
	s[MORE] = ahead[HELLO];
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(FAILURE_HIDDEN, 5, 6, LABELS("more", "hello"), .name = "code"));
}

static void the_request_is_a_writer_too(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	/* what the request fills is written by the other queue as well */
	memcpy(s, good, sizeof(s));
	s[COUNT].remote = (struct chain_place)FIELD("match", CHAIN_F_COMPARE, 0, 0);
	s[MATCH].line = 4; /* the line of the one that writes is the first that a message shows */
	s[COUNT].line = 6;
	assert_wrong(s, WRONG(FETCHED_LATE, COUNT, MATCH, LINES(6, 4)));

	/* nothing may run before it is there, or without it */
	memcpy(s, good, sizeof(s));
	s[HEAD] = (struct chain_step){.queue = 0, .verb = CHAIN_NOP};
	assert_wrong(s, WRONG(HEAD_START, HEAD, NO_STEP, LINES(0), .verb = "nop"));
}

/* The order of the description is what the chain means */
static void the_order_of_the_text(void **state)
{
	struct chain_step s[STEPS];

	(void)state;
	memcpy(s, good, sizeof(s));
	s[LOOK] = good[COUNTED];
	s[COUNTED] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
	s[MATCH].remote = (struct chain_place)WORD(16, 0);
	s[DECIDE].remote = (struct chain_place)WORD(28, 0);
	s[MATCH].line = 4;
	s[COUNT].line = 6;
	assert_wrong(s, WRONG(ORDER_REVERSED, COUNT, MATCH, LINES(6, 4)));
}

/* ---- one queue: what the connection itself keeps in order -------------------------------- */

/* clang-format off */
#define REQUEST_STARTS \
	{.queue = 0, .verb = CHAIN_WAIT}, \
	{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END}
#define LAST_IS(name) \
	{.queue = 1, .verb = CHAIN_WAIT, .until = (name)}, \
	{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD}, \
	{.label = "done", .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED, .remote = SLOT, .local = {REGION(1, 8)}}
#define STORE(name, at, n, f) \
	{.label = (name), .queue = 1, .verb = CHAIN_WRITE, .flags = (f), .remote = WORD(at, 0), .local = {REGION(0, n)}}
#define LOAD(name, at, n, f) \
	{.label = (name), .queue = 1, .verb = CHAIN_READ, .flags = (f), .remote = REGION(0, 0), .local = {WORD(at, n)}}
#define MOVE(name, v, from, to, n, f) \
	{.label = (name), .queue = 1, .verb = (v), .flags = (f), .remote = WORD(from, 0), .local = {WORD(to, n)}}
#define COUNT_TO(name, at, old, f) \
	{.label = (name), .queue = 1, .verb = CHAIN_FETCH_ADD, .flags = (f), .add = 1, .remote = WORD(at, 0), \
	 .local = {WORD(old, 8)}}
/* clang-format on */

#define CHECK(why, ...)                                                                                      \
	do {                                                                                                 \
		static const struct chain_step steps[] = {REQUEST_STARTS, __VA_ARGS__};                      \
		check_one_queue(steps, sizeof(steps) / sizeof(steps[0]), why);                               \
	} while (0)

static bool fenced_enables;
static const struct chain_desc *endless; /* a loop beside it, and the region that the two share */
static uint8_t shared;

static void check_one_queue(const struct chain_step *steps, unsigned n, struct fault why)
{
	struct chain_error err;
	int r = chain_check_order(&(struct chain_desc){.name = "one",
					  .queues = two_queues,
					  .nqueues = 2,
					  .words = words,
					  .nwords = 1,
					  .nregions = 2,
					  .fenced_enables = fenced_enables,
					  .loop = endless,
					  .shared = shared,
					  .steps = steps,
					  .nsteps = n},
		&err);

	assert_int_equal(r, why.code ? CHAIN_REFUSED : 0);
	assert_fault(&err, why);
}

enum { LAST = CHAIN_SIGNALLED };

static void the_responder_keeps_order(void **state)
{
	(void)state;
	/* what a WRITE wrote is there for what follows on the same connection */
	CHECK(FINE, STORE("store", 0, 8, 0), MOVE("load", CHAIN_READ, 0, 8, 8, LAST), LAST_IS("load"));
	CHECK(FINE, STORE("store", 0, 8, 0), STORE("again", 0, 8, LAST), LAST_IS("again"));
	CHECK(FINE, STORE("store", 0, 8, 0), COUNT_TO("count", 0, 8, LAST), LAST_IS("count"));
	CHECK(FINE, COUNT_TO("count", 0, 8, 0), COUNT_TO("again", 0, 16, LAST), LAST_IS("again"));
	/* but not for what that gathers, nor what a READ brings */
	CHECK(WRONG(READ_AND_WRITE, 2, 3), STORE("store", 0, 8, 0), MOVE("send", CHAIN_WRITE, 8, 0, 8, LAST),
		LAST_IS("send"));
	CHECK(WRONG(READ_AND_WRITE, 2, 3), LOAD("load", 0, 8, 0), MOVE("send", CHAIN_WRITE, 8, 0, 8, LAST),
		LAST_IS("send"));
	CHECK(WRONG(READ_AND_WRITE, 2, 3), LOAD("load", 0, 8, 0), MOVE("again", CHAIN_READ, 0, 8, 8, LAST),
		LAST_IS("again"));
	/* a READ may still be under way when the WRITE after it is executed; an atomic as well */
	CHECK(WRONG(READ_AND_WRITE, 2, 3), MOVE("load", CHAIN_READ, 0, 8, 8, 0), STORE("store", 0, 8, LAST),
		LAST_IS("store"));
	CHECK(WRONG(BOTH_WRITE, 2, 3), COUNT_TO("count", 0, 8, 0), STORE("store", 0, 8, LAST),
		LAST_IS("store"));
	/* what a WRITE takes is taken when what follows is executed */
	CHECK(FINE, MOVE("send", CHAIN_WRITE, 8, 0, 8, 0), LOAD("load", 0, 8, LAST), LAST_IS("load"));
}

/* A length that is replaced has no end but that of the region, on either side */
static void lengths_have_no_end(void **state)
{
	struct chain_step s[] = {
		{.queue = 0, .verb = CHAIN_WAIT},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .through = "go"},
		LOAD("len", 0, 8, CHAIN_SIGNALLED),
		{.queue = 1, .verb = CHAIN_WAIT, .until = "len"},
		{.label = "go", .queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
		{.label = "copy",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0),
			.local = {REGION(1, 8)},
			.line = 6},
		STORE("store", 0, 8, CHAIN_SIGNALLED),
		LAST_IS("store"),
	};
	const unsigned n = sizeof(s) / sizeof(s[0]);

	(void)state;
	s[6].remote = (struct chain_place)REGION(1, 0);
	s[6].remote.from = 64;
	s[n - 1].local[0] = (struct chain_place)WORD(0, 8);
	check_one_queue(s, n, FINE);
	s[2].local[0] = (struct chain_place)FIELD("copy", CHAIN_F_LOCAL_LEN, 0, 4);
	check_one_queue(s, n, WRONG(BOTH_WRITE, 5, 6, LINES(6)));
	s[5].remote = (struct chain_place)REGION(1, 0);
	s[5].local[0] = (struct chain_place)REGION(0, 8);
	check_one_queue(s, n, WRONG(READ_AND_WRITE, 5, 6, LINES(6)));
	s[6].remote.index = 0;
	s[6].remote.from = 8;
	s[5].local[0].index = 1;
	s[5].remote.index = 0;
	check_one_queue(s, n, WRONG(READ_AND_WRITE, 5, 6, LINES(6)));
	/* nor has an address, and a region may be larger than 4 GiB */
	s[5].remote = (struct chain_place)REGION(1, 0);
	s[5].local[0] = (struct chain_place)WORD(8, 8);
	s[6].remote = (struct chain_place)REGION(1, 0);
	s[6].remote.from = UINT32_MAX;
	s[2].local[0] = (struct chain_place)WORD(16, 8);
	check_one_queue(s, n, FINE);
	s[2].local[0] = (struct chain_place)FIELD("copy", CHAIN_F_REMOTE_ADDR, 3, 5);
	check_one_queue(s, n, WRONG(READ_AND_WRITE, 5, 6, LINES(6)));
}

/* A fence waits for READs and atomics, and their answers come after those of all before them */
static void a_fence_after_a_read(void **state)
{
	(void)state;
	CHECK(FINE, STORE("store", 0, 8, 0), LOAD("load", 8, 8, 0),
		MOVE("send", CHAIN_WRITE, 16, 0, 8, CHAIN_FENCE | LAST), LAST_IS("send"));
	CHECK(WRONG(READ_AND_WRITE, 2, 3), STORE("store", 0, 8, 0),
		MOVE("send", CHAIN_WRITE, 16, 0, 8, CHAIN_FENCE | LAST), LAST_IS("send"));
	/* which does not hold for a READ that may be a NOP, */
	CHECK(WRONG(READ_AND_WRITE, 2, 4), STORE("store", 0, 8, 0), LOAD("load", 8, 8, CHAIN_DORMANT),
		MOVE("send", CHAIN_WRITE, 16, 0, 8, CHAIN_FENCE | LAST), LAST_IS("send"));
	/* but a WRITE that may be one does not hide what was before it */
	CHECK(FINE, STORE("store", 0, 8, 0), STORE("maybe", 24, 8, CHAIN_DORMANT), LOAD("load", 8, 8, 0),
		MOVE("send", CHAIN_WRITE, 16, 0, 8, CHAIN_FENCE | LAST), LAST_IS("send"));
	/* no source states that a SEND_EN heeds a fence */
	CHECK(WRONG(FETCHED_EARLY, 2, 4),
		{.label = "load",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0),
			.local = {FIELD("done", CHAIN_F_LOCAL_LEN, 0, 4)}},
		{.queue = 1,
			.verb = CHAIN_SEND_EN,
			.flags = CHAIN_FENCE,
			.target = 0,
			.upto = CHAIN_UPTO_NEXT_HEAD},
		{.label = "done",
			.verb = CHAIN_WRITE_IMM,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {REGION(1, 8)}});
	/* the SEND_EN runs before what it does not wait for has failed */
	CHECK(WRONG(FAILURE_HIDDEN, 2, 5, .name = "code"), LOAD("load", 0, 8, LAST),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD},
		{.queue = 0, .verb = CHAIN_WAIT, .until = "load"},
		{.label = "done",
			.verb = CHAIN_WRITE_IMM,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {REGION(1, 8)}});
}

/* On a device that has been seen to heed the fence of a SEND_EN. What that of a WAIT or RECV_EN does, nobody
 * has seen */
static void a_fenced_enable(void **state)
{
	(void)state;
	fenced_enables = true;
#define PATCH(what, f)                                                                                       \
	{.label = "load",                                                                                    \
		.queue = 1,                                                                                  \
		.verb = CHAIN_READ,                                                                          \
		.flags = CHAIN_SIGNALLED,                                                                    \
		.remote = REGION(0, 0),                                                                      \
		.local = {FIELD("done", CHAIN_F_LOCAL_LEN, 0, 4)}},                                          \
		{.queue = 1, .verb = (what), .flags = (f)},                                                  \
	{                                                                                                    \
		.label = "done", .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED, .remote = SLOT,          \
		.local = {                                                                                   \
			REGION(1, 8)                                                                         \
		}                                                                                            \
	}
#define ENABLE(f)                                                                                            \
	{                                                                                                    \
		.queue = 1, .verb = CHAIN_SEND_EN, .flags = (f), .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD   \
	}
	CHECK(FINE, PATCH(CHAIN_NOP, 0), ENABLE(CHAIN_FENCE));
	CHECK(WRONG(FETCHED_EARLY, 2, 4), PATCH(CHAIN_NOP, 0), ENABLE(0));
	CHECK(WRONG(FETCHED_EARLY, 2, 4), PATCH(CHAIN_WAIT, CHAIN_FENCE), ENABLE(0));
	/* it waits for READs, not for WRITEs */
	CHECK(WRONG(END_EARLY, 2, 4), STORE("store", 0, 8, 0), ENABLE(CHAIN_FENCE),
		{.label = "done",
			.verb = CHAIN_WRITE_IMM,
			.flags = CHAIN_SIGNALLED,
			.remote = SLOT,
			.local = {REGION(1, 8)}});
#undef PATCH
#undef ENABLE
	fenced_enables = false;
}

/* An address that is replaced can be anywhere in its region */
static void regions(void **state)
{
	static const struct chain_step look = LOAD("look", 0, 8, 0);
	struct chain_step s[] = {REQUEST_STARTS, look,
		{.label = "store",
			.queue = 1,
			.verb = CHAIN_WRITE,
			.flags = LAST,
			.remote = {.kind = CHAIN_AT_REGION, .index = 0, .from = 64},
			.local = {WORD(8, 8)}},
		LAST_IS("store")};

	(void)state;
	check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
	s[3].remote.from = 4;
	check_one_queue(s, sizeof(s) / sizeof(s[0]), WRONG(READ_AND_WRITE, 2, 3));
	s[3].flags |= CHAIN_FENCE;
	check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
	/* with a loop that shares this region, or another */
	endless = &(const struct chain_desc){.name = "loop"};
	for (shared = 0; shared < 2; shared++)
		check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
	endless = NULL;
	s[3] = (struct chain_step){.label = "store",
		.queue = 1,
		.verb = CHAIN_FETCH_ADD,
		.flags = LAST | CHAIN_FENCE,
		.add = 1,
		.remote = REGION(0, 0)};
	check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
	s[2] = (struct chain_step){.label = "put",
		.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = REGION(0, 0),
		.local = {WORD(8, 8)}};
	check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
}

/* One READ to as many places as there can be */
static void scattered(void **state)
{
	struct chain_step s[] = {REQUEST_STARTS,
		{.label = "read", .queue = 1, .verb = CHAIN_READ, .flags = LAST, .remote = REGION(0, 0)},
		LAST_IS("read")};

	(void)state;
	for (unsigned i = 0; i < CHAIN_MAX_SGE; i++)
		s[2].local[i] = (struct chain_place)WORD(8 + i, 1);
	check_one_queue(s, sizeof(s) / sizeof(s[0]), FINE);
}

/* As many steps as there can be, half of them touching the same word */
static void the_largest(void **state)
{
	static struct chain_step s[CHAIN_MAX_STEPS];
	static char label[CHAIN_MAX_STEPS][8];
	const struct chain_step start[] = {REQUEST_STARTS}, end[] = {LAST_IS("s508")};
	struct chain_desc d = {.name = "large",
		.queues = two_queues,
		.nqueues = 2,
		.words = words,
		.nwords = 1,
		.nregions = 2,
		.steps = s,
		.nsteps = CHAIN_MAX_STEPS};
	struct chain_error err;
	struct timespec t0, t1;

	(void)state;
	memcpy(s, start, sizeof(start));
	memcpy(s + CHAIN_MAX_STEPS - 3, end, sizeof(end));
	for (unsigned i = 2; i < CHAIN_MAX_STEPS - 3; i++) {
		snprintf(label[i], sizeof(label[i]), "s%u", i);
		s[i] = i % 2 ? (struct chain_step)STORE(label[i], 0, 8, CHAIN_FENCE | CHAIN_DORMANT)
			     : (struct chain_step)MOVE(label[i], CHAIN_READ, 0, 8, 8, CHAIN_FENCE | LAST);
	}
	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (chain_check_order(&d, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	clock_gettime(CLOCK_MONOTONIC, &t1);
	print_message("%d steps: %ld us\n", CHAIN_MAX_STEPS,
		(t1.tv_sec - t0.tv_sec) * 1000000 + (t1.tv_nsec - t0.tv_nsec) / 1000);
	NOMEM_TRY(-ENOMEM, chain_check_order(&d, &err));
	assert_int_equal(nomem_result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_order),
		cmocka_unit_test(nothing_can_be_left_out),
		cmocka_unit_test(errors_do_not_lie),
		cmocka_unit_test(no_effect_of_failures),
		cmocka_unit_test(fetched_in_groups),
		cmocka_unit_test(two_queues_wake_the_answer),
		cmocka_unit_test(patching_ahead_in_one_queue),
		cmocka_unit_test(two_queues_that_enable_a_third),
		cmocka_unit_test(enabled_by_one_of_two),
		cmocka_unit_test(an_answer_before_the_end),
		cmocka_unit_test(the_request_is_a_writer_too),
		cmocka_unit_test(the_order_of_the_text),
		cmocka_unit_test(the_responder_keeps_order),
		cmocka_unit_test(lengths_have_no_end),
		cmocka_unit_test(a_fence_after_a_read),
		cmocka_unit_test(a_fenced_enable),
		cmocka_unit_test(regions),
		cmocka_unit_test(scattered),
		cmocka_unit_test(the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
