/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small chains that use what hash get does not, on the emulated silicon: adds, masked atomics, WRITEs, a walk
 * in which one READ fills in the next, replies by SEND. Each is proven in order first; then any seed must
 * agree.
 */
#include "mlx5/wqe.h"
#include "reddnd/chain/verify/order.h"
#include "tests/chain/chain-rig.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

enum { SEEDS = 30, REQUESTS = 40, DEPTH = 4, SLOT = 64, DATA = 4096, REPLY_MAX = 64 };

/* clang-format off */
#define REGION(at, n) {.kind = CHAIN_AT_REGION, .from = (at), .len = (n)}
#define WORD(w, n) {.kind = CHAIN_AT_SCRATCH, .name = (w), .len = (n)}
#define PART(w, at, n) {.kind = CHAIN_AT_SCRATCH, .name = (w), .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define HEAD(how_far, step) \
	{.queue = 0, .verb = CHAIN_WAIT}, \
	{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = (how_far), .through = (step)}
#define WAIT(step) {.queue = 1, .verb = CHAIN_WAIT, .until = (step)}
#define ANSWER {.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD}
/* clang-format on */

static const struct chain_queue_desc queues[] = {{"reply", 2}, {"code", 0}};
static const struct chain_word words[] = {{"old", 8, NULL}, {"new", 8, NULL}, {"more", 8, NULL},
	{"pair", 2 * CHAIN_CALC_BYTES, NULL}, {"largest", CHAIN_CALC_BYTES, NULL},
	{"mixed", CHAIN_CALC_BYTES, NULL}};

struct program {
	const char *name;
	const struct chain_step *steps;
	unsigned nsteps;
	const struct chain_place *args;
	unsigned nargs;
	/* Fills @arg for request @n, does to @data what the chain must do, and fills in the expected reply */
	uint32_t (*model)(struct chain_rig *c, uint8_t *data, uint8_t *arg, uint8_t *reply);
};

static uint64_t get_le(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

static void put_le(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* ---- a counter: the client gives the amount, and gets the value before and after ------------- */

/* The READ needs no fence: what one queue sends, the responder executes in order */
static const struct chain_step count_steps[] = {
	HEAD(CHAIN_UPTO_END, NULL),
	{.label = "add",
		.queue = 1,
		.verb = CHAIN_FETCH_ADD,
		.remote = REGION(0, 0),
		.local = {WORD("old", 8)}},
	{.label = "see",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_FENCE | CHAIN_SIGNALLED,
		.remote = REGION(0, 0),
		.local = {WORD("new", 8)}},
	WAIT("see"),
	ANSWER,
	{.queue = 0, .verb = CHAIN_SEND, .flags = CHAIN_SIGNALLED, .local = {WORD("old", 8), WORD("new", 8)}},
};
static const struct chain_place count_args[] = {FIELD("add", CHAIN_F_ADD, 0, 8)};

static uint32_t count_model(struct chain_rig *c, uint8_t *data, uint8_t *arg, uint8_t *reply)
{
	uint64_t by = chain_rig_random(c, 1ull << 40);

	wqe_put64(arg, by);
	memcpy(reply, data, 8);
	put_le(data, get_le(data) + by);
	memcpy(reply + 8, data, 8);
	return 16;
}

/* ---- masked atomics: swap some bits if others match, then add to two halves at once ------- */

#define BOUNDARY 0x80000000ull

static const struct chain_step mask_steps[] = {
	HEAD(CHAIN_UPTO_END, NULL),
	{.label = "swap",
		.queue = 1,
		.verb = CHAIN_MASKED_CAS,
		.remote = REGION(8, 0),
		.compare_mask = 3,
		.swap_mask = 0xffff0000,
		.swap = 0x12340000,
		.local = {WORD("old", 8)}},
	{.label = "add",
		.queue = 1,
		.verb = CHAIN_MASKED_FETCH_ADD,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(8, 0),
		.add = 0x00000001f0000001,
		.boundary = BOUNDARY,
		.local = {WORD("new", 8)}},
	WAIT("add"),
	ANSWER,
	{.queue = 0, .verb = CHAIN_SEND, .flags = CHAIN_SIGNALLED, .local = {WORD("old", 8), WORD("new", 8)}},
};
static const struct chain_place mask_args[] = {FIELD("swap", CHAIN_F_COMPARE, 7, 1)};

static uint32_t mask_model(struct chain_rig *c, uint8_t *data, uint8_t *arg, uint8_t *reply)
{
	uint64_t v = get_le(data + 8);

	arg[0] = (uint8_t)chain_rig_random(c, 256);
	put_le(reply, v);
	if ((v & 3) == (arg[0] & 3u))
		v = (v & ~0xffff0000ull) | 0x12340000;
	put_le(reply + 8, v);
	/* no carry from the low half into the high one */
	v = ((v + 0xf0000001) & 0xffffffff) | ((v & ~0xffffffffull) + (1ull << 32));
	put_le(data + 8, v);
	return 16;
}

/* ---- a walk of three steps through a ring of nodes: value and big-endian address of the next ---- */

enum { NODE = 64, NODES = 32 };

#define STEP(here, next)                                                                                     \
	{                                                                                                    \
		.label = (here), .queue = 1, .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED,                   \
		.remote = REGION(0, 0), .local = {                                                           \
			WORD("old", 8),                                                                      \
			FIELD(next, CHAIN_F_REMOTE_ADDR, 5, 3)                                               \
		}                                                                                            \
	}

static const struct chain_step walk_steps[] = {
	HEAD(CHAIN_UPTO_STEP, "to1"),
	STEP("node0", "node1"),
	WAIT("node0"),
	{.label = "to1", .queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .through = "to2"},
	STEP("node1", "node2"),
	WAIT("node1"),
	{.label = "to2", .queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
	{.label = "node2",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(0, 0),
		.local = {WORD("new", 8)}},
	WAIT("node2"),
	/* leaves a mark in the data as well */
	{.label = "mark",
		.queue = 1,
		.verb = CHAIN_WRITE,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(NODES * NODE, 0),
		.local = {WORD("old", 8), WORD("new", 8)}},
	WAIT("mark"),
	ANSWER,
	{.queue = 0, .verb = CHAIN_NOP},
	{.queue = 0, .verb = CHAIN_SEND, .flags = CHAIN_SIGNALLED, .local = {WORD("new", 8)}},
};
static const struct chain_place walk_args[] = {FIELD("node0", CHAIN_F_REMOTE_ADDR, 6, 2)};

static uint32_t walk_model(struct chain_rig *c, uint8_t *data, uint8_t *arg, uint8_t *reply)
{
	unsigned node = (unsigned)chain_rig_random(c, NODES);
	const uint8_t *at = data + node * NODE;
	uint8_t *mark = data + NODES * NODE;

	wqe_put16(arg, (uint16_t)(node * NODE));
	at = data + wqe_get(at + 8, 3);
	memcpy(mark, at, 8);
	at = data + wqe_get(at + 8, 3);
	memcpy(mark + 8, at, 8);
	memcpy(reply, at, 8);
	return 8;
}

/* ---- CALC: the larger of the client's number and one of the region, and all three of them mixed ---- */

static const struct chain_step calc_steps[] = {
	HEAD(CHAIN_UPTO_END, NULL),
	{.label = "read",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_SIGNALLED,
		.remote = REGION(16, 0),
		.local = {PART("pair", CHAIN_CALC_BYTES, 8)}},
	WAIT("read"),
	{.label = "max",
		.queue = 1,
		.verb = CHAIN_CALC_MAX,
		.flags = CHAIN_SIGNALLED,
		.remote = WORD("largest", 0),
		.local = {WORD("pair", 2 * CHAIN_CALC_BYTES)}},
	WAIT("max"),
	{.label = "mix",
		.queue = 1,
		.verb = CHAIN_CALC_XOR,
		.flags = CHAIN_SIGNALLED,
		.remote = WORD("mixed", 0),
		.local = {WORD("pair", 2 * CHAIN_CALC_BYTES), WORD("largest", CHAIN_CALC_BYTES)}},
	WAIT("mix"),
	ANSWER,
	{.queue = 0,
		.verb = CHAIN_SEND,
		.flags = CHAIN_SIGNALLED,
		.local = {WORD("largest", 8), WORD("mixed", 8)}},
};
static const struct chain_place calc_args[] = {PART("pair", 0, 8)};

static uint32_t calc_model(struct chain_rig *c, uint8_t *data, uint8_t *arg, uint8_t *reply)
{
	uint64_t theirs = wqe_get64(data + 16),
		 ours = theirs + chain_rig_random(c, 1ull << 40) - (1ull << 39);

	if (chain_rig_random(c, 2)) /* as a signed number, the other one is the larger */
		ours ^= 1ull << 63;
	wqe_put64(arg, ours);
	wqe_put64(reply, ours > theirs ? ours : theirs);
	wqe_put64(reply + 8, ours ^ theirs ^ (ours > theirs ? ours : theirs));
	return 16;
}

/* ---- running them ----------------------------------------------------------------------- */

#define PROGRAM(p)                                                                                           \
	{                                                                                                    \
#p, p##_steps, COUNT(p##_steps), p##_args, COUNT(p##_args), p##_model                        \
	}

static const struct program programs[] = {PROGRAM(count), PROGRAM(mask), PROGRAM(walk), PROGRAM(calc)};

static struct chain_desc describe(const struct program *p)
{
	return (struct chain_desc){.name = p->name,
		.queues = queues,
		.nqueues = 2,
		.words = words,
		.nwords = COUNT(words),
		.nregions = 1,
		.steps = p->steps,
		.nsteps = p->nsteps,
		.args = p->args,
		.nargs = p->nargs};
}

/* With @recycled instances that the NIC keeps going, or, 0, that the rig arms */
static void run(const struct program *p, uint64_t seed, unsigned recycled)
{
	struct chain_desc d = describe(p);
	struct hw_config cfg = {.seed = seed};
	struct chain_image *img = NULL;
	struct chain_rig c;
	uint8_t model[DATA], arg[CHAIN_MAX_ARG], expect[DEPTH][REPLY_MAX] = {0}, *data, *slots, *reply;
	struct chain_error err;
	char why[400] = "";
	uint64_t answered = 0;
	unsigned idle = 0;

	if (chain_check_order(&d, &err) || chain_build(&d, &img, &err))
		fail_msg("%s: %s", p->name, chain_error_name(err.code));
	chain_rig_open(&c, &cfg, img, DEPTH);
	if (recycled)
		chain_rig_recycle(&c, recycled);
	data = rig_alloc(&c.rig, DATA);
	slots = rig_alloc(&c.rig, DEPTH * SLOT);
	reply = rig_alloc(&c.rig, DEPTH * REPLY_MAX);
	chain_rig_fill(&c, data, DATA);
	for (unsigned n = 0; n < NODES; n++)
		wqe_put32(data + n * NODE + 8, (uint32_t)chain_rig_random(&c, NODES) * NODE << 8);
	memcpy(model, data, DATA);
	c.env.region[0].iova = 1ull << 40;
	c.env.region[0].lkey = c.env.region[0].rkey =
		chain_rig_key(&c, data, DATA, c.env.region[0].iova, CHAIN_RIG_ALL_RIGHTS);
	chain_rig_start(&c, slots, SLOT, DEPTH);

	while (answered < REQUESTS || c.completed < REQUESTS) {
		const uint8_t *cqe;

		if (c.sent < REQUESTS && c.sent - answered < DEPTH && chain_rig_random(&c, 2)) {
			unsigned k = (unsigned)(c.sent % DEPTH);
			uint32_t len = p->model(&c, model, arg, expect[k]);

			chain_rig_send(&c, arg, img->arg_len, reply + k * REPLY_MAX, len);
		}
		idle = hw_poll(c.rig.dev) ? 0 : idle + 1;
		if (idle > 1000)
			fail_msg("%s, seed %lu: no answer to request %lu", p->name, (unsigned long)seed,
				(unsigned long)answered);
		while ((cqe = rig_cq_next(&c.client_rcq))) {
			assert_int_equal(rig_cqe_op(cqe), CQE_OP_RESP_SEND);
			assert_memory_equal(reply + answered % DEPTH * REPLY_MAX, expect[answered % DEPTH],
				wqe_get(cqe + 44, 4));
			answered++;
		}
		if (!chain_rig_serve(&c, why, sizeof(why)))
			fail_msg("%s, seed %lu: %s", p->name, (unsigned long)seed, why);
	}
	assert_memory_equal(data, model, DATA);
	chain_rig_close(&c);
}

static void every_seed_agrees(void **state)
{
	(void)state;
	for (unsigned p = 0; p < COUNT(programs); p++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			run(&programs[p], seed, 0);
}

static void every_seed_agrees_recycled(void **state)
{
	(void)state;
	for (unsigned p = 0; p < COUNT(programs); p++)
		for (uint64_t seed = 0; seed < CHAIN_RIG_SEEDS; seed++)
			run(&programs[p], seed, seed % 2 ? 8 : 16);
}

/* Every WAIT for a step is one that the proof asks for */
static void no_wait_can_be_spared(void **state)
{
	struct chain_step steps[32];
	struct chain_error err;

	(void)state;
	for (unsigned p = 0; p < COUNT(programs); p++)
		for (unsigned s = 0; s < programs[p].nsteps; s++) {
			struct chain_desc d = describe(&programs[p]);

			memcpy(steps, programs[p].steps, d.nsteps * sizeof(*steps));
			if (steps[s].verb != CHAIN_WAIT || !steps[s].until)
				continue;
			steps[s] = (struct chain_step){.queue = 1, .verb = CHAIN_NOP};
			d.steps = steps;
			assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_seed_agrees),
		cmocka_unit_test(every_seed_agrees_recycled),
		cmocka_unit_test(no_wait_can_be_spared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
