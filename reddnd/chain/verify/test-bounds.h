/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-bounds.h - what the tests of bounds.h share: a chain that it accepts, for them to change.
 */
#ifndef CHAIN_VERIFY_TEST_BOUNDS_H
#define CHAIN_VERIFY_TEST_BOUNDS_H

#include "reddnd/chain/verify/bounds.h"

#include "mlx5/wqe.h"
#include "tests/chain/assert-error.h"
#include "tests/lib/nomem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* clang-format off */
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "w", .from = (at), .len = (n)}
#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define SLOT(at) {.kind = CHAIN_AT_SLOT, .from = (at)}
#define PLACE(...) ((struct chain_place)__VA_ARGS__)
#define STEP(...) ((struct chain_step){__VA_ARGS__})

enum { TABLE, HEAP, COUNTS, LOG, REGIONS };
static const struct chain_region regions[REGIONS] = {
	[TABLE] = {.name = "table", .size = 4096}, [HEAP] = {.name = "heap"},
	[COUNTS] = {.name = "counts", .flags = CHAIN_WRITABLE, .size = 64},
	[LOG] = {.name = "log", .flags = CHAIN_WRITABLE | CHAIN_STEERED},
};

/* An if, a counter, and a line in a log where the client wants it */
enum { HEAD, NEXT, LOOK, MATCH, DECIDE, COUNT, NOTE, DECIDED, ANSWER, HIT, DONE, STEPS };
static const struct chain_step good[STEPS] = {
	[HEAD] = {.queue = 0, .verb = CHAIN_WAIT},
	[NEXT] = {.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
	[LOOK] = {.label = "look", .queue = 1, .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0), .line = 3,
		  .local = {FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3), FIELD("hit", CHAIN_F_LOCAL_ADDR, 3, 5), WORD(0, 7)}},
	[MATCH] = {.label = "match", .queue = 1, .verb = CHAIN_CAS, .remote = WORD(0, 0), .line = 4,
		   .swap = (uint64_t)WQE_OP_WRITE << 56},
	[DECIDE] = {.label = "decide", .queue = 1, .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED, .remote = WORD(7, 0),
		    .local = {FIELD("hit", CHAIN_F_OPCODE, 0, 1)}, .line = 5},
	[COUNT] = {.label = "count", .queue = 1, .verb = CHAIN_FETCH_ADD, .add = 1, .remote = REGION(COUNTS, 8, 0),
		   .local = {WORD(16, 8)}, .line = 6},
	[NOTE] = {.label = "note", .queue = 1, .verb = CHAIN_WRITE, .remote = REGION(LOG, 0, 0), .local = {WORD(16, 8)},
		  .line = 7},
	[DECIDED] = {.label = "decided", .queue = 1, .verb = CHAIN_WAIT, .until = "decide", .line = 8},
	[ANSWER] = {.label = "answer", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD,
		    .line = 9},
	[HIT] = {.label = "hit", .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, .remote = SLOT(64),
		 .local = {{.kind = CHAIN_AT_REGION, .index = HEAP, .len = 1, .max = 1000}}, .line = 10},
	[DONE] = {.label = "done", .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED, .remote = SLOT(0),
		  .local = {REGION(TABLE, 128, 64)}, .line = 11},
};
static const struct chain_place args[] = {
	FIELD("match", CHAIN_F_COMPARE, 1, 7),
	FIELD("look", CHAIN_F_REMOTE_ADDR, 3, 5),
	FIELD("note", CHAIN_F_REMOTE_ADDR, 6, 2),
};
/* clang-format on */

static const struct chain_queue_desc queues[] = {{"reply", 2}, {"code", 0}};

static struct {
	struct chain_step s[STEPS];
	struct chain_region r[REGIONS];
	struct chain_place a[4];
	struct chain_word w;
	struct chain_desc d;
} t;

static void fresh(void)
{
	memcpy(t.s, good, sizeof(t.s));
	memcpy(t.r, regions, sizeof(t.r));
	memcpy(t.a, args, sizeof(args));
	t.w = (struct chain_word){"w", 48, NULL};
	t.d = (struct chain_desc){.name = "if",
		.queues = queues,
		.nqueues = 2,
		.words = &t.w,
		.nwords = 1,
		.nregions = REGIONS,
		.regions = t.r,
		.slot_size = 2000,
		.steps = t.s,
		.nsteps = STEPS,
		.args = t.a,
		.nargs = 3};
}

/* Checks @t, and starts it afresh */
static void assert_fine(void)
{
	struct chain_error err;

	if (chain_check_bounds(&t.d, NULL, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	fresh();
}

static void assert_wrong(struct fault why)
{
	struct chain_error err;

	assert_int_equal(chain_check_bounds(&t.d, NULL, &err), CHAIN_REFUSED);
	assert_fault(&err, why);
	fresh();
}

#endif
