/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/chain/by-hand.h"
#include "util/array.h"

#include "mlx5/wqe.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"
#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/verify/order.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* clang-format off */
enum { REPLY, LOOK0, LOOK1 }; /* queues; the sequential form does all looking in LOOK0 */

/*
 * Bytes of the word "probe". Sequential: the second lane follows the first. Parallel: each comparison has its own
 * queue and READ, and the second lane is followed by the opcode of the answer's end.
 */
enum {
	FP_LEN = sizeof(((struct reddn_bucket *)0)->fp), MARK_LEN = FP_LEN + 1,
	FP0 = 0, LANE0 = 7,
	SEQ_LANE1 = 8, SEQ_FP1 = 9,
	PAR_FP1 = 8, PAR_LANE1 = 15, PAR_END = 16,
};
static const uint8_t parallel_init[24] = {[PAR_END] = WQE_OP_WRITE_IMM};

/* In a WQE's operand the word's bytes are reversed: the lane is the first byte, or the last. */
#define SWAP_LANE_LAST ((uint64_t)WQE_OP_WRITE << 56)
#define SWAP_LANE_FIRST ((uint64_t)WQE_OP_WRITE)
#define TAG_LANE_LAST ((uint64_t)REDDN_TABLE_TAG << 48)
#define TAG_LANE_FIRST ((uint64_t)REDDN_TABLE_TAG << 56)

#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define SLOT(at) {.kind = CHAIN_AT_SLOT, .from = (at)}
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "probe", .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
/* The low @n bytes of a big-endian field of @size bytes */
#define LOW(step, f, size, n) FIELD(step, f, (size) - (n), n)

/* The head */
#define AWAIT_REQUEST {.queue = REPLY, .verb = CHAIN_WAIT}
#define START(q) {.queue = REPLY, .verb = CHAIN_SEND_EN, .target = (q), .upto = CHAIN_UPTO_END}

/* A bucket goes where its parts are needed: length and offset of the record into the reply, mark to be compared */
#define LOOK(q, name, hit, fp) \
	{.label = (name), .queue = (q), .verb = CHAIN_READ, .remote = REGION(CHAIN_HASH_GET_WINDOW, 0, 0), \
	 .local = {LOW(hit, CHAIN_F_LOCAL_LEN, 4, sizeof((struct reddn_bucket *)0)->len), \
		   LOW(hit, CHAIN_F_LOCAL_ADDR, 8, sizeof((struct reddn_bucket *)0)->off), WORD(fp, MARK_LEN)}}

#define COMPARE(q, name, f, word_at, tag, swapped) \
	{.label = (name), .queue = (q), .verb = CHAIN_CAS, .flags = (f), .remote = WORD(word_at, 0), \
	 .compare = (tag), .swap = (swapped)}

#define HIT(name) \
	{.label = (name), .queue = REPLY, .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, \
	 .remote = SLOT(REDDN_SLOT_RECORD), .local = {REGION(CHAIN_HASH_GET_HEAP, 0, 1)}}

#define ANSWER(f) \
	HIT("hit0"), \
	HIT("hit1"), \
	{.label = "done", .queue = REPLY, .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED | CHAIN_IMM_SEQ | (f), \
	 .remote = SLOT(REDDN_SLOT_LIVE), .local = {REGION(CHAIN_HASH_GET_LIVE, 0, sizeof(struct reddn_table_live))}}

static const struct chain_step sequential[] = {
	AWAIT_REQUEST,
	START(LOOK0),
	LOOK(LOOK0, "look0", "hit0", FP0),
	LOOK(LOOK0, "look1", "hit1", SEQ_FP1),
	COMPARE(LOOK0, "match0", CHAIN_FENCE, FP0, TAG_LANE_LAST, SWAP_LANE_LAST),
	COMPARE(LOOK0, "match1", 0, SEQ_LANE1, TAG_LANE_FIRST, SWAP_LANE_FIRST),
	{.label = "decide", .queue = LOOK0, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(LANE0, 0), .local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1), FIELD("hit1", CHAIN_F_OPCODE, 0, 1)}},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide"},
	{.queue = LOOK0, .verb = CHAIN_SEND_EN, .target = REPLY, .upto = CHAIN_UPTO_NEXT_HEAD},
	ANSWER(0),
};

/*
 * A WAIT for another queue's CQE also ends with the CQE of an error. "decide1" therefore wakes the end of the
 * answer as well: when it fails the client gets no answer, rather than a miss that may not be true. The errors of
 * LOOK0 flush the enable of the reply with the rest of that queue.
 */
static const struct chain_step parallel[] = {
	AWAIT_REQUEST,
	START(LOOK0),
	START(LOOK1),
	LOOK(LOOK0, "look0", "hit0", FP0),
	COMPARE(LOOK0, "match0", CHAIN_FENCE, FP0, TAG_LANE_LAST, SWAP_LANE_LAST),
	{.label = "decide0", .queue = LOOK0, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(LANE0, 0), .local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1)}},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide0"},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide1"},
	{.queue = LOOK0, .verb = CHAIN_SEND_EN, .target = REPLY, .upto = CHAIN_UPTO_NEXT_HEAD},
	LOOK(LOOK1, "look1", "hit1", PAR_FP1),
	COMPARE(LOOK1, "match1", CHAIN_FENCE, PAR_FP1, TAG_LANE_LAST, SWAP_LANE_LAST),
	{.label = "decide1", .queue = LOOK1, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(PAR_LANE1, 0), .local = {FIELD("hit1", CHAIN_F_OPCODE, 0, 1), FIELD("done", CHAIN_F_OPCODE, 0, 1)}},
	ANSWER(CHAIN_DORMANT),
};

static const struct chain_queue_desc sequential_queues[] = {{"reply", 2}, {"look0", 0}};
static const struct chain_queue_desc parallel_queues[] = {{"reply", 3}, {"look0", 0}, {"look1", 0}};
static const struct chain_word sequential_word = {"probe", 16, NULL}, parallel_word = {"probe", 24, parallel_init};

/* As for the sequential form. The length of each offset, 1 here, is the caller's choice */
static const struct chain_place request[] = {
	FIELD("match0", CHAIN_F_COMPARE, 2, FP_LEN),
	LOW("look0", CHAIN_F_REMOTE_ADDR, 8, 1),
	FIELD("match1", CHAIN_F_COMPARE, 1, FP_LEN),
	LOW("look1", CHAIN_F_REMOTE_ADDR, 8, 1),
};
/* clang-format on */

int chain_hash_get(const struct chain_hash_get *p, struct chain_image **out)
{
	struct chain_place args[COUNT(request)];
	struct chain_desc d = {
		.name = p->parallel ? "hash-get-parallel" : "hash-get",
		.queues = p->parallel ? parallel_queues : sequential_queues,
		.nqueues = p->parallel ? 3 : 2,
		.words = p->parallel ? &parallel_word : &sequential_word,
		.nwords = 1,
		.nregions = CHAIN_HASH_GET_LIVE + 1,
		.steps = p->parallel ? parallel : sequential,
		.nsteps = p->parallel ? COUNT(parallel) : COUNT(sequential),
		.args = args,
		.nargs = COUNT(args),
	};
	struct chain_error err;
	int r;

	if (p->offset_len < 1 || p->offset_len > 7)
		return -EINVAL;
	memcpy(args, request, sizeof(args));
	for (unsigned a = 0; a < COUNT(args); a++) {
		if (p->parallel && args[a].field == CHAIN_F_COMPARE)
			args[a].from = 2; /* both lanes are last */
		if (args[a].field != CHAIN_F_REMOTE_ADDR)
			continue;
		args[a].len = p->offset_len;
		args[a].from = 8u - p->offset_len;
	}
	r = chain_check_order(&d, &err);
	if (!r)
		r = chain_build(&d, out, &err);
	assert(r <= 0 && "the description above is refused");
	return r;
}
