/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/hashget.h"

#include "libclient/table-format.h"
#include "libclient/wire.h"
#include "reddnd/chain/build.h"
#include "reddnd/chain/wqe.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* clang-format off */
enum { REPLY, LOOK0, LOOK1 }; /* queues; the sequential form does all looking in LOOK0 */

enum { /* bytes of the word "probe", see hashget.h */
	FP0 = 0, LANE0 = 7, LANE1 = 8, FP1 = 9, FP_LEN = 7,
	/* The operand's first byte is the word's last */
	COMPARE_FP0 = 1, COMPARE_FP1 = 0,
};

#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define SLOT(at) {.kind = CHAIN_AT_SLOT, .from = (at)}
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "probe", .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
/* The low @n bytes of a big-endian field of @size bytes */
#define LOW(step, f, size, n) FIELD(step, f, (size) - (n), n)

#define AWAIT_REQUEST(q) \
	{.queue = (q), .verb = CHAIN_WAIT}, \
	{.queue = (q), .verb = CHAIN_SEND_EN, .target = (q), .upto = CHAIN_UPTO_NEXT_HEAD}

/* A bucket goes where its parts are needed: length and offset of the record into the reply, fingerprint to be compared */
#define LOOK(q, name, hit, fp) \
	{.label = (name), .queue = (q), .verb = CHAIN_READ, .remote = REGION(CHAIN_HASH_GET_WINDOW, 0, 0), \
	 .local = {LOW(hit, CHAIN_F_LOCAL_LEN, 4, sizeof((struct reddn_bucket *)0)->len), \
		   LOW(hit, CHAIN_F_LOCAL_ADDR, 8, sizeof((struct reddn_bucket *)0)->off), WORD(fp, FP_LEN)}}

#define COMPARE(q, name, f, word_at, opcode_shift) \
	{.label = (name), .queue = (q), .verb = CHAIN_CAS, .flags = (f), .remote = WORD(word_at, 0), \
	 .compare = 0, .swap = (uint64_t)WQE_OP_WRITE << (opcode_shift)}

#define HIT(name) \
	{.label = (name), .queue = REPLY, .verb = CHAIN_WRITE, .flags = CHAIN_DORMANT, \
	 .remote = SLOT(REDDN_SLOT_RECORD), .local = {REGION(CHAIN_HASH_GET_HEAP, 0, 1)}}

#define ANSWER \
	HIT("hit0"), \
	HIT("hit1"), \
	{.label = "done", .queue = REPLY, .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED | CHAIN_IMM_SEQ, \
	 .remote = SLOT(REDDN_SLOT_LIVE), .local = {REGION(CHAIN_HASH_GET_LIVE, 0, sizeof(struct reddn_table_live))}}

static const struct chain_step sequential[] = {
	AWAIT_REQUEST(LOOK0),
	LOOK(LOOK0, "look0", "hit0", FP0),
	LOOK(LOOK0, "look1", "hit1", FP1),
	COMPARE(LOOK0, "match0", CHAIN_FENCE, FP0, 56),
	COMPARE(LOOK0, "match1", 0, LANE1, 0),
	{.label = "decide", .queue = LOOK0, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(LANE0, 0), .local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1), FIELD("hit1", CHAIN_F_OPCODE, 0, 1)}},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide"},
	{.queue = LOOK0, .verb = CHAIN_SEND_EN, .target = REPLY, .upto = CHAIN_UPTO_END},
	ANSWER,
};

static const struct chain_step parallel[] = {
	AWAIT_REQUEST(LOOK0),
	LOOK(LOOK0, "look0", "hit0", FP0),
	COMPARE(LOOK0, "match0", CHAIN_FENCE, FP0, 56),
	{.label = "decide0", .queue = LOOK0, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(LANE0, 0), .local = {FIELD("hit0", CHAIN_F_OPCODE, 0, 1)}},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide0"},
	{.queue = LOOK0, .verb = CHAIN_WAIT, .until = "decide1"},
	{.queue = LOOK0, .verb = CHAIN_SEND_EN, .target = REPLY, .upto = CHAIN_UPTO_END},
	AWAIT_REQUEST(LOOK1),
	LOOK(LOOK1, "look1", "hit1", FP1),
	COMPARE(LOOK1, "match1", CHAIN_FENCE, LANE1, 0),
	{.label = "decide1", .queue = LOOK1, .verb = CHAIN_READ, .flags = CHAIN_FENCE | CHAIN_SIGNALLED,
	 .remote = WORD(LANE1, 0), .local = {FIELD("hit1", CHAIN_F_OPCODE, 0, 1)}},
	ANSWER,
};

static const struct chain_queue_desc queues[] = {{"reply", 0}, {"look0", 2}, {"look1", 2}};
static const struct chain_word words[] = {{"probe", 16, NULL}};

/* The length of each offset, 1 here, is the caller's choice */
static const struct chain_place request[] = {
	FIELD("match0", CHAIN_F_COMPARE, COMPARE_FP0, FP_LEN),
	LOW("look0", CHAIN_F_REMOTE_ADDR, 8, 1),
	FIELD("match1", CHAIN_F_COMPARE, COMPARE_FP1, FP_LEN),
	LOW("look1", CHAIN_F_REMOTE_ADDR, 8, 1),
};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int chain_hash_get(const struct chain_hash_get *p, struct chain_image **out)
{
	struct chain_place args[COUNT(request)];
	struct chain_desc d = {
		.name = p->parallel ? "hash-get-parallel" : "hash-get",
		.queues = queues,
		.nqueues = p->parallel ? 3 : 2,
		.words = words,
		.nwords = COUNT(words),
		.nregions = CHAIN_HASH_GET_LIVE + 1,
		.steps = p->parallel ? parallel : sequential,
		.nsteps = p->parallel ? COUNT(parallel) : COUNT(sequential),
		.args = args,
		.nargs = COUNT(args),
	};
	char err[CHAIN_ERR];
	int r;

	if (p->offset_len < 1 || p->offset_len > 7)
		return -EINVAL;
	memcpy(args, request, sizeof args);
	for (unsigned a = 0; a < COUNT(args); a++) {
		if (args[a].field != CHAIN_F_REMOTE_ADDR)
			continue;
		args[a].len = p->offset_len;
		args[a].from = 8u - p->offset_len;
	}
	r = chain_build(&d, out, err);
	assert(r <= 0 && "the description above is refused");
	return r;
}
