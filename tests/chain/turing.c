/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/chain/turing.h"

#include "reddnd/chain/decode.h"
#include "reddnd/chain/wqe.h"

#include <stdio.h>
#include <string.h>

enum { TABLE, TAPE, LEFT = 0, RIGHT = 0x80, ALL_RIGHTS = 15 };

/* clang-format off */
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define LOCAL(step, k, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = CHAIN_F_LOCAL_ADDR, .sge = (k), .from = (at), .len = (n)}
#define CELL(x, n) {.kind = CHAIN_AT_REGION, .index = TAPE, .from = (x), .len = (n)}

#define RULE(f) \
	{.label = "rule", .verb = CHAIN_READ, .flags = (f), .remote = {.kind = CHAIN_AT_REGION, .index = TABLE}, \
	 .local = {CELL((TURING_START - 1) << 8 | RIGHT, 1), CELL((TURING_START + 1) << 8 | LEFT, 1), \
		   FIELD("move", CHAIN_F_REMOTE_ADDR, 7, 1), FIELD("go", CHAIN_F_OPCODE, 0, 1), \
		   FIELD("rule", CHAIN_F_REMOTE_ADDR, 7, 1)}}
#define MOVE(f) \
	{.label = "move", .verb = CHAIN_READ, .flags = (f), .remote = CELL(TURING_START << 8, 0), \
	 .local = {FIELD("rule", CHAIN_F_REMOTE_ADDR, 6, 1), FIELD("move", CHAIN_F_REMOTE_ADDR, 5, 2), \
		   LOCAL("rule", 0, 5, 2), LOCAL("rule", 1, 5, 2)}}
#define ENABLE(name, f, through_) \
	{.label = (name), .verb = CHAIN_SEND_EN, .flags = (f), .upto = CHAIN_UPTO_STEP, .through = (through_)}

static const struct chain_step waiting[] = {
	RULE(CHAIN_SIGNALLED),
	{.verb = CHAIN_WAIT, .until = "rule"},
	ENABLE("known", 0, "go"),
	MOVE(CHAIN_SIGNALLED),
	{.verb = CHAIN_WAIT, .until = "move"},
	ENABLE("go", 0, "known"),
};

static const struct chain_step fencing[] = {
	RULE(0),
	ENABLE("known", CHAIN_FENCE, "go"),
	MOVE(0),
	ENABLE("go", CHAIN_FENCE, "known"),
};
/* clang-format on */

static const struct chain_queue_desc queues[] = {{"machine", 0}};
static const struct chain_desc programs[] = {
	[TURING_WAITS] = {.name = "turing",
		.queues = queues,
		.nqueues = 1,
		.nregions = 2,
		.steps = waiting,
		.nsteps = 6},
	[TURING_FENCES] = {.name = "turing",
		.queues = queues,
		.nqueues = 1,
		.nregions = 2,
		.steps = fencing,
		.nsteps = 4},
};

const struct chain_desc *turing_program(enum turing_form form)
{
	return &programs[form];
}

static void put_cell(uint8_t *record, uint16_t x)
{
	record[0] = 0;
	wqe_put16(record + 1, x);
	wqe_put16(record + 3, (uint16_t)(x - 1));
	wqe_put16(record + 5, (uint16_t)(x + 1));
}

static void make_regions(struct turing *t, const char *rules)
{
	unsigned states = (unsigned)(strlen(rules) + 1) / 7;

	t->table = rig_alloc(&t->rig, TURING_TABLE);
	t->tape = rig_alloc(&t->rig, (size_t)TURING_CELLS << 8);
	for (unsigned q = 0; q < states; q++)
		for (unsigned s = 0; s < 2; s++) {
			const char *rule = rules + q * 7 + s * 3;
			uint8_t *e = t->table + (s << 8 | q * 8);
			unsigned next = (unsigned)(rule[2] - 'A');

			e[0] = e[1] = (uint8_t)(rule[0] - '0');
			e[2] = rule[1] == 'R' ? RIGHT : LEFT;
			e[3] = next < states ? WQE_OP_SEND_EN : WQE_OP_NOP;
			e[4] = (uint8_t)(next * 8);
		}
	for (unsigned x = 1; x < TURING_CELLS - 1; x++) {
		put_cell(t->tape + (x << 8 | LEFT), (uint16_t)(x - 1));
		put_cell(t->tape + (x << 8 | RIGHT), (uint16_t)(x + 1));
	}
}

static uint32_t make_key(
	struct turing *t, unsigned k, const void *p, uint64_t len, uint64_t iova, unsigned access)
{
	struct hw_mkey_attr a = {
		.pdn = t->rig.pdn, .iova = iova, .len = len, .access = access, .mem = &t->rig.mem};

	a.mem_off = rig_off(&t->rig, p);
	assert_int_equal(hw_mkey_create(t->rig.dev, &a, &t->key[k]), 0);
	return t->key[k];
}

void turing_open(struct turing *t, const struct hw_config *cfg, const char *rules, enum turing_form form,
	uint32_t wqebbs)
{
	char err[CHAIN_ERR];
	int r;

	memset(t, 0, sizeof *t);
	rig_open(&t->rig, cfg);
	make_regions(t, rules);
	rig_cq_new_attr(&t->rig, &t->cq, (struct hw_cq_attr){.log_size = 4, .oi = true});
	rig_qp_new_with(&t->rig, &t->qp, &t->cq, &t->cq, (struct rig_opt){.managed = true, .wqebbs = wqebbs});
	rig_connect(&t->qp, &t->qp);
	t->env.queue[0].ring_wqebbs = wqebbs;
	t->env.queue[0].cqn = hw_cqn(t->cq.cq);
	t->env.queue[0].qpn = hw_qpn(t->qp.qp);
	r = chain_loop(turing_program(form), &t->env, &t->info, err);
	if (r)
		fail_msg("%d: %s", r, err);

	t->env.region[TABLE].iova = 1ull << 40;
	t->env.region[TAPE].iova = 2ull << 40;
	t->env.queue[0].iova = 3ull << 40;
	t->env.lanes.iova = 4ull << 40;
	t->env.lanes.size = t->info.lanes;
	t->env.lanes.mem = rig_alloc(&t->rig, t->info.lanes);
	t->env.queue[0].ring = t->qp.sq;
	t->env.region[TABLE].rkey = make_key(t, 0, t->table, TURING_TABLE, 1ull << 40, HW_REMOTE_READ);
	t->env.region[TAPE].rkey = t->env.region[TAPE].lkey = make_key(
		t, 1, t->tape, (uint64_t)TURING_CELLS << 8, 2ull << 40, HW_REMOTE_READ | HW_LOCAL_WRITE);
	t->env.queue[0].lkey = t->env.queue[0].rkey =
		make_key(t, 2, t->qp.sq, (uint64_t)wqebbs * 64, 3ull << 40, ALL_RIGHTS);
	t->env.lanes.lkey = t->env.lanes.rkey =
		make_key(t, 3, t->env.lanes.mem, t->info.lanes, 4ull << 40, ALL_RIGHTS);
	r = chain_loop(turing_program(form), &t->env, &t->info, err);
	if (r)
		fail_msg("%d: %s", r, err);
	rig_cq_new(&t->rig, &t->boot_cq, 4);
	rig_qp_new(&t->rig, &t->boot, &t->boot_cq, &t->boot_cq);
	rig_connect(&t->boot, &t->boot);
}

void turing_start(struct turing *t)
{
	wqe_enable(&t->boot, HW_OP_SEND_EN, t->env.queue[0].qpn, t->info.start, 0);
	rig_ring(&t->boot);
}

/* In a lap, the iteration that the WQEBB with that index belongs to */
static unsigned iteration_at(const struct chain_loop_info *info, uint32_t ring_wqebbs, uint16_t index)
{
	uint32_t at = index & (ring_wqebbs - 1), half = info->iterations / 2;
	uint32_t base = at < info->second ? 0 : half, in = (at - (base ? info->second : 0)) / info->wqebbs;

	return base + (in < half ? in : half - 1); /* the last of a half has what renews the other */
}

bool turing_healthy(const struct turing *t, char *why, size_t size)
{
	char line[250];

	if (hw_qp_state(t->qp.qp) == HW_RTS)
		return true;
	for (unsigned i = 0; i < t->cq.size; i++) {
		const uint8_t *cqe = t->cq.ring + (size_t)i * 64;
		uint32_t at = rig_cqe_idx(cqe) & (t->qp.wqebbs - 1);

		if (rig_cqe_op(cqe) != HW_CQE_REQ_ERR || rig_cqe_synd(cqe) == HW_SYND_FLUSH)
			continue;
		chain_decode(t->qp.sq + (size_t)at * 64, 512, line, sizeof line);
		snprintf(why, size, "syndrome %#x at WQEBB %u, iteration %u: %s", rig_cqe_synd(cqe), at,
			iteration_at(&t->info, t->qp.wqebbs, (uint16_t)at), line);
	}
	return false;
}

uint64_t turing_progress(const struct turing *t)
{
	uint64_t steps;

	memcpy(&steps, t->env.lanes.mem + t->info.progress, 8);
	return steps;
}

uint64_t turing_steps(const struct turing *t)
{
	unsigned half = t->info.iterations / 2, at;
	struct hw_qp_progress p;

	hw_qp_progress(t->qp.qp, &p);
	at = iteration_at(&t->info, t->qp.wqebbs, (uint16_t)(p.sq_done - 1)) % half + 1;
	return turing_progress(t) + (at == half ? 0 : at); /* the last one of a half counts all of it */
}

uint8_t turing_cell(const struct turing *t, unsigned x)
{
	uint8_t left = t->tape[(x - 1) << 8 | RIGHT], right = t->tape[(x + 1) << 8 | LEFT];

	assert_int_equal(left, right);
	return left;
}

unsigned turing_ones(const struct turing *t)
{
	unsigned ones = 0;

	for (unsigned x = 1; x < TURING_CELLS - 1; x++)
		ones += turing_cell(t, x);
	return ones;
}

void turing_close(struct turing *t)
{
	rig_destroy(&t->qp);
	rig_destroy(&t->boot);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->cq.cq), 0);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->boot_cq.cq), 0);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(hw_mkey_destroy(t->rig.dev, t->key[k]), 0);
	rig_close(&t->rig);
}
