/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/chain/random-chain.h"

#include "mlx5/wqe.h"
#include "util/xorshift.h"

#include <stdio.h>
#include <string.h>

enum { MAX_IFS = 8, VARS = 64, LANE = 7, RESERVED = RANDOM_QUEUES /* at the end: the answer and done */ };

static const struct chain_queue_desc queues[RANDOM_QUEUES] = {{"reply", 0}, {"a", 0}, {"b", 0}, {"c", 0}};
static const struct chain_region regions[RANDOM_REGIONS] = {
	[RANDOM_DATA] = {.name = "data", .size = RANDOM_REGION_SIZE},
	[RANDOM_STORE] = {
		.name = "store", .size = RANDOM_REGION_SIZE, .flags = CHAIN_WRITABLE | CHAIN_STEERED}};

static unsigned rnd(struct random_chain *r, unsigned below)
{
	return (unsigned)((xorshift(&r->rng) >> 20) % below);
}

static struct chain_place word(const char *name, unsigned from, unsigned len)
{
	return (struct chain_place){.kind = CHAIN_AT_SCRATCH, .name = name, .from = from, .len = len};
}

static struct chain_place var(struct random_chain *r, unsigned len)
{
	return word("v", rnd(r, VARS - len), len);
}

static struct chain_place region(struct random_chain *r, unsigned index, unsigned len)
{
	return (struct chain_place){
		.kind = CHAIN_AT_REGION, .index = (uint8_t)index, .from = 8 * rnd(r, 4), .len = len};
}

static struct chain_place field(const struct chain_step *st, enum chain_field f, unsigned from, unsigned len)
{
	return (struct chain_place){
		.kind = CHAIN_AT_FIELD, .name = st->label, .field = (uint8_t)f, .from = from, .len = len};
}

static bool is_atomic(const struct chain_step *st)
{
	return st->verb >= CHAIN_CAS && st->verb <= CHAIN_MASKED_FETCH_ADD;
}

static enum chain_field operand(struct random_chain *r, const struct chain_step *st)
{
	if (st->verb == CHAIN_CAS || st->verb == CHAIN_MASKED_CAS)
		return rnd(r, 2) ? CHAIN_F_SWAP : CHAIN_F_COMPARE;
	return CHAIN_F_ADD;
}

/* The low bytes of an address; the length of a reply is then not replaced as well, or the sum could be too
 * much */
static struct chain_place low(struct random_chain *r, unsigned s, enum chain_field f)
{
	unsigned wide = rnd(r, 2) && !r->steps[s].local[0].max;

	r->wide_address[s] |= wide;
	return field(&r->steps[s], f, 7 - wide, 1 + wide);
}

/* Bytes in a step after @s that may be anything; or NONE */
static struct chain_place patch(struct random_chain *r, unsigned s)
{
	unsigned t = s + 1 + rnd(r, r->d.nsteps - s - 1);
	struct chain_step *st = &r->steps[t];

	if (is_atomic(st) && st->remote.kind != CHAIN_AT_SCRATCH)
		return field(st, operand(r, st), rnd(r, 7), 1);
	if (is_atomic(st) || st->verb == CHAIN_WRITE_IMM)
		return (struct chain_place){0};
	if (st->remote.kind == CHAIN_AT_REGION && rnd(r, 2))
		return low(r, t, CHAIN_F_REMOTE_ADDR);
	if (st->local[0].kind != CHAIN_AT_REGION)
		return (struct chain_place){0};
	if (st->queue == 0 && !r->wide_address[t] && rnd(r, 2)) {
		st->local[0].max = 0xff00 + st->local[0].len;
		return field(st, CHAIN_F_LOCAL_LEN, 2, 1);
	}
	return low(r, t, CHAIN_F_LOCAL_ADDR);
}

/* The operand of an `if` after @s; or NONE */
static struct chain_place question(struct random_chain *r, unsigned s)
{
	for (unsigned t = s + 1; t < r->d.nsteps; t++)
		if (r->steps[t].verb == CHAIN_CAS && r->steps[t].remote.kind == CHAIN_AT_SCRATCH && rnd(r, 2))
			return word("if", r->steps[t].remote.from, 1);
	return (struct chain_place){0};
}

static bool touches_store(const struct chain_step *st)
{
	for (unsigned i = 0; i < CHAIN_MAX_SGE; i++)
		if (st->local[i].kind == CHAIN_AT_REGION && st->local[i].index == RANDOM_STORE)
			return true;
	return st->remote.kind == CHAIN_AT_REGION && st->remote.index == RANDOM_STORE;
}

/* Not twice the same within one step: which comes first is not said */
static struct chain_place destination(struct random_chain *r, unsigned s, unsigned sge)
{
	struct chain_place p = {0};
	unsigned pick = rnd(r, 8);

	if (pick < 4)
		p = patch(r, s);
	else if (pick < 6)
		p = question(r, s);
	else if (pick == 6 && !touches_store(&r->steps[s]))
		p = region(r, RANDOM_STORE, 1 + rnd(r, 16));
	return p.kind == CHAIN_AT_NONE ? word("v", 20 * sge + rnd(r, 12), 1 + rnd(r, 8)) : p;
}

static struct chain_place source(struct random_chain *r, unsigned s)
{
	const struct chain_step *st = &r->steps[s];

	if (st->queue == 0 && rnd(r, 8)) /* what is not replaced until the reply is sent */
		return region(r, RANDOM_DATA, 1 + rnd(r, 16));
	if (rnd(r, 2) && st->remote.kind != CHAIN_AT_SCRATCH)
		return var(r, 1 + rnd(r, 8));
	return region(r, touches_store(st) ? RANDOM_DATA : rnd(r, RANDOM_REGIONS), 1 + rnd(r, 16));
}

/* ---- the steps, first without what depends on later ones ------------------------------------- */

static struct chain_step *step(struct random_chain *r, enum chain_verb verb, unsigned queue)
{
	unsigned s = r->d.nsteps++;

	snprintf(r->label[s], sizeof(r->label[s]), "s%u", s);
	r->steps[s] = (struct chain_step){
		.label = r->label[s], .queue = (uint8_t)queue, .verb = (uint8_t)verb, .line = s + 1};
	return &r->steps[s];
}

/* Compares a byte and copies the lane; whose opcode it becomes is decided later */
static void decide(struct random_chain *r, unsigned queue)
{
	struct chain_step *st = step(r, CHAIN_CAS, queue);

	st->compare = rnd(r, 2);
	st->remote = word("if", 8 * r->nifs, 0);
	step(r, CHAIN_READ, queue)->remote = word("if", 8 * r->nifs++ + LANE, 0);
}

static void skeleton(struct random_chain *r, unsigned nsteps)
{
	while (r->d.nsteps < nsteps) {
		unsigned queue = r->d.nsteps ? 1 + rnd(r, r->d.nqueues - 1) : 1, pick = rnd(r, 16);
		struct chain_step *st;

		if (pick < 3 && r->nifs < MAX_IFS) {
			decide(r, queue);
		} else if (pick < 8) {
			st = step(r, CHAIN_READ, queue);
			st->remote = rnd(r, 3) ? region(r, rnd(r, RANDOM_REGIONS), 0) : var(r, VARS - 1);
		} else if (pick < 11) {
			st = step(r, CHAIN_WRITE, queue);
			st->remote = rnd(r, 2) ? region(r, RANDOM_STORE, 0) : var(r, VARS - 1);
		} else if (pick < 13) {
			st = step(r, CHAIN_CAS + rnd(r, 4), queue);
			st->remote = rnd(r, 2) ? region(r, RANDOM_STORE, 0) : word("v", 8 * rnd(r, 8), 0);
			st->swap = st->add = rnd(r, 3);
			st->compare = rnd(r, 2);
			st->swap_mask = st->compare_mask = 0xff;
			st->boundary = rnd(r, 2) ? 0x80 : 0;
		} else {
			st = step(r, CHAIN_WRITE, 0);
			st->flags = rnd(r, 2) ? CHAIN_AHEAD : 0;
			st->remote = (struct chain_place){.kind = CHAIN_AT_SLOT, .from = 8 + rnd(r, 4000)};
		}
	}
}

static void fill(struct random_chain *r, unsigned s, unsigned ntext)
{
	struct chain_step *st = &r->steps[s];
	unsigned n = 1 + rnd(r, 3);

	if (st->verb == CHAIN_WRITE_IMM)
		return;
	if (is_atomic(st)) {
		if (st->remote.kind != CHAIN_AT_SCRATCH || strcmp(st->remote.name, "if") != 0)
			if (rnd(r, 2))
				st->local[0] = word("v", 8 * rnd(r, 8), 8);
		return;
	}
	if (st->verb == CHAIN_READ && st->remote.kind == CHAIN_AT_SCRATCH &&
		strcmp(st->remote.name, "if") == 0) {
		unsigned t = s + 1 + rnd(r, r->d.nsteps - s - 1);

		/* those at the end have no lanes but the ones that tell them of other queues */
		if (r->steps[t].flags & CHAIN_DORMANT || t >= ntext || r->steps[t].verb == CHAIN_WRITE_IMM) {
			st->local[0] = var(r, 1);
			return;
		}
		r->steps[t].flags |= CHAIN_DORMANT;
		st->local[0] = field(&r->steps[t], CHAIN_F_OPCODE, 0, 1);
		r->steps[s - 1].swap = (uint64_t)chain_verb_info(r->steps[t].verb)->opcode << 56;
		return;
	}
	if (st->remote.kind == CHAIN_AT_SCRATCH) /* short enough for where it is */
		st->remote.from = rnd(r, VARS - 3 * 16);
	for (unsigned i = 0; i < n; i++)
		if (st->local[i].kind == CHAIN_AT_NONE)
			st->local[i] = st->verb == CHAIN_READ ? destination(r, s, i) : source(r, s);
}

/* Ends each queue but the first with a step that wakes the end of the reply, through those of the queues
 * before it */
static void tell(struct random_chain *r)
{
	const char *to[RANDOM_QUEUES];
	unsigned first = r->d.nsteps, n = r->d.nqueues;

	for (unsigned q = n - 1; q >= 2; q--) {
		struct chain_step *st = step(r, CHAIN_READ, q);

		st->remote = word("op", q, 0);
		to[q] = st->label;
		if (q < n - 1)
			st->flags = CHAIN_DORMANT;
	}
	to[1] = r->label[r->d.nsteps];
	for (unsigned s = first; s < r->d.nsteps; s++) {
		unsigned q = r->steps[s].queue;

		r->steps[s].local[0] = (struct chain_place){
			.kind = CHAIN_AT_FIELD, .name = to[q - 1], .field = CHAIN_F_OPCODE, .len = 1};
		r->opcodes[q] = q == 2 ? WQE_OP_WRITE_IMM : WQE_OP_READ;
	}
}

static void add_args(struct random_chain *r, unsigned ntext)
{
	while (r->d.nargs < 3) {
		struct chain_place *p = &r->args[r->d.nargs++];
		struct chain_step *st = &r->steps[rnd(r, ntext)];

		*p = word("v", 8 * rnd(r, 8) + r->d.nargs, 1);
		if (is_atomic(st) && rnd(r, 2))
			*p = field(st, operand(r, st), 7, 1);
		else if (!is_atomic(st) && st->queue && st->remote.kind == CHAIN_AT_REGION)
			*p = low(r, (unsigned)(st - r->steps), CHAIN_F_REMOTE_ADDR);
	}
}

static void answer(struct random_chain *r, uint8_t flags)
{
	struct chain_step *st = step(r, CHAIN_WRITE_IMM, 0);

	st->flags = CHAIN_IMM_SEQ | flags;
	st->remote = (struct chain_place){.kind = CHAIN_AT_SLOT};
	st->local[0] = (struct chain_place){.kind = CHAIN_AT_REGION, .index = RANDOM_DATA, .len = 8};
}

void random_chain(struct random_chain *r, uint64_t seed)
{
	unsigned ntext, nsteps;
	bool early;

	memset(r, 0, sizeof(*r));
	r->rng = (seed + 1) * 0x9e3779b97f4a7c15;
	r->words[0] = (struct chain_word){"v", VARS, NULL};
	r->words[1] = (struct chain_word){"if", sizeof(r->lanes), r->lanes};
	r->words[2] = (struct chain_word){"op", sizeof(r->opcodes), r->opcodes};
	nsteps = 2 + rnd(r, RANDOM_STEPS - RESERVED - 2);
	r->d = (struct chain_desc){.name = "random",
		.queues = queues,
		.nqueues = 2 + rnd(r, RANDOM_QUEUES - 1),
		.words = r->words,
		.nwords = 3,
		.nregions = RANDOM_REGIONS,
		.regions = regions,
		.slot_size = RANDOM_SLOT,
		.steps = r->steps,
		.args = r->args};
	early = r->d.nqueues == 2 && nsteps > 3 && rnd(r, 2);
	if (early) {
		skeleton(r, 1 + rnd(r, nsteps - 2));
		answer(r, CHAIN_AHEAD);
	}
	skeleton(r, nsteps - 1);
	ntext = r->d.nsteps;
	tell(r);
	if (early) {
		struct chain_step *end = step(r, CHAIN_WRITE, 0);

		end->remote = (struct chain_place){.kind = CHAIN_AT_SLOT, .from = 8};
		end->local[0] = (struct chain_place){.kind = CHAIN_AT_REGION, .index = RANDOM_DATA, .len = 8};
	} else {
		answer(r, r->d.nqueues > 2 ? CHAIN_DORMANT : 0);
	}
	/* the last first, so that a patch knows what it patches */
	for (unsigned s = ntext; s-- > 0;)
		fill(r, s, ntext);
	add_args(r, ntext);
}
