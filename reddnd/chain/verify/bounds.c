/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/bounds.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/layout.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_BYTES = 4,
	ADDR_BYTES = 8,
	LEN_BYTES = 4,
	OPERAND_BYTES = 8,
	NOBODY = 0xfffe,
	BEYOND = 0xfffd, /* what shares memory with this: the loop, or who calls it */
	ROUNDS = 300     /* of a loop, until no byte can be anything new */
};

/* Where a value can come from */
enum origin { PROGRAM, REGION, CLIENT, ORIGINS };

/** What a byte can be. */
struct cell {
	uint64_t values[256 / 64];
	uint8_t from; /* bits of enum origin */
	bool written; /* by a step or the request */
	uint64_t failed[256 /
			64]; /* and what else if a CAS of queue `settled` - 1 failed; that queue stops then */
	uint8_t settled;
	uint16_t by[ORIGINS]; /* the first step that brought it from there; LAYOUT_NONE: the request */
};

struct bounds {
	struct layout l;
	struct cell *queue[CHAIN_MAX_QUEUES], *scratch;
	struct cell of_region, of_client;
	struct cell *shared; /* what a loop and its caller share; not ours alone */
	uint32_t nshared;
	bool in_loop; /* the steps are those of an iteration, which follows itself */
	struct chain_bounds needs;
	unsigned s; /* step at work */
};

/* ---- cells ------------------------------------------------------------------------------ */

static void any_value(struct cell *c, enum origin from)
{
	memset(c->values, 0xff, sizeof(c->values));
	c->from |= (uint8_t)(1u << from);
}

static void one_value(struct cell *c, uint8_t v)
{
	memset(c->values, 0, sizeof(c->values));
	c->values[v / 64] = 1ull << v % 64;
	c->from = 1u << PROGRAM;
}

static bool is_only(const struct cell *c, uint8_t v)
{
	struct cell one = {0};

	one_value(&one, v);
	return memcmp(one.values, c->values, sizeof(one.values)) == 0;
}

static bool can_be(const struct cell *c, uint8_t v)
{
	return c->values[v / 64] >> v % 64 & 1;
}

static void join(struct bounds *b, struct cell *to, const struct cell *from)
{
	for (unsigned i = 0; i < sizeof(to->values) / sizeof(to->values[0]); i++)
		to->values[i] |= from->values[i];
	for (unsigned o = 0; o < ORIGINS; o++)
		if (from->from >> o & 1 && to->by[o] == NOBODY) {
			to->from |= (uint8_t)(1u << o);
			to->by[o] = (uint16_t)b->s;
		}
	to->written = true;
}

static struct cell *cells(struct bounds *b, const struct layout_range *r)
{
	if (r->sym == CHAIN_SYM_REGION)
		return b->shared + r->offset;
	return (r->sym == CHAIN_SYM_QUEUE ? b->queue[r->index] : b->scratch) + r->offset;
}

static bool is_ours(const struct bounds *b, const struct layout_range *r)
{
	if (r->sym == CHAIN_SYM_REGION)
		return b->shared && r->index == b->l.d->shared && r->offset + r->len <= b->nshared;
	return r->sym == CHAIN_SYM_QUEUE || r->sym == CHAIN_SYM_SCRATCH;
}

static struct cell load(struct bounds *b, const struct layout_range *r, unsigned i)
{
	struct cell c = is_ours(b, r) ? cells(b, r)[i] : b->of_region;

	for (unsigned v = 0; c.settled != b->l.d->steps[b->s].queue + 1 && v < 256 / 64; v++)
		c.values[v] |= c.failed[v];
	return c;
}

static void store(struct bounds *b, const struct layout_range *r, unsigned i, const struct cell *c)
{
	if (is_ours(b, r))
		join(b, cells(b, r) + i, c);
}

/* ---- the values of the description ---------------------------------------------------------- */

static struct layout_range place(struct bounds *b, const struct chain_place *p, uint32_t len)
{
	struct layout_range r = {.sym = CHAIN_SYM_REGION};

	layout_resolve(&b->l, p, len, &(struct chain_error_at){0}, &r);
	return r;
}

static struct cell *wqe(struct bounds *b, unsigned s)
{
	return b->queue[b->l.d->steps[s].queue] + (size_t)b->l.step[s].at * CHAIN_WQEBB;
}

static void set_operand(struct bounds *b, enum chain_field field, uint64_t v)
{
	unsigned size;
	int at = chain_field_at(b->l.d->steps[b->s].verb, field, 0, &size);

	for (unsigned i = 0; at >= 0 && i < size; i++)
		one_value(&wqe(b, b->s)[at + i], (uint8_t)(v >> 8 * (size - 1 - i)));
}

static void forget_writers(struct cell *c, size_t n)
{
	for (; n--; c++)
		for (unsigned o = 0; o < ORIGINS; o++)
			c->by[o] = NOBODY;
}

static int make_cells(struct bounds *b)
{
	const struct layout *l = &b->l;

	for (unsigned q = 0; q < l->d->nqueues; q++) {
		size_t n = (size_t)l->wqebbs[q] * CHAIN_WQEBB;

		b->queue[q] = calloc(n, sizeof(*b->queue[q]));
		if (!b->queue[q])
			return -ENOMEM;
		for (size_t i = 0; i < n; i++)
			any_value(&b->queue[q][i], PROGRAM);
		forget_writers(b->queue[q], n);
	}
	b->scratch = calloc(l->scratch_size + 1, sizeof(*b->scratch));
	if (!b->scratch)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->scratch_size; i++)
		one_value(&b->scratch[i], 0);
	forget_writers(b->scratch, l->scratch_size);
	for (unsigned w = 0; w < l->d->nwords; w++)
		for (unsigned i = 0; l->d->words[w].init && i < l->d->words[w].size; i++)
			one_value(&b->scratch[l->word_at[w] + i], l->d->words[w].init[i]);
	for (b->s = 0; b->s < l->d->nsteps; b->s++) {
		const struct chain_step *st = &l->d->steps[b->s];

		one_value(&wqe(b, b->s)[WQE_OPMOD], chain_verb_info(st->verb)->opmod);
		one_value(&wqe(b, b->s)[WQE_DSCOUNT], l->step[b->s].ds);
		one_value(&wqe(b, b->s)[WQE_OPCODE],
			st->flags & CHAIN_DORMANT ? WQE_OP_NOP : chain_verb_info(st->verb)->opcode);
		set_operand(b, CHAIN_F_SWAP, st->swap);
		set_operand(b, CHAIN_F_COMPARE, st->compare);
		set_operand(b, CHAIN_F_SWAP_MASK, st->swap_mask);
		set_operand(b, CHAIN_F_COMPARE_MASK, st->compare_mask);
		set_operand(b, CHAIN_F_ADD, st->add);
		set_operand(b, CHAIN_F_BOUNDARY, st->boundary);
	}
	any_value(&b->of_region, REGION);
	any_value(&b->of_client, CLIENT);
	return 0;
}

/* ---- what a step does to them ----------------------------------------------------------- */

static bool is_opcode(const struct chain_place *p)
{
	return p->kind == CHAIN_AT_FIELD && p->field == CHAIN_F_OPCODE;
}

static void copy(struct bounds *b)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	struct layout_range remote = place(b, &st->remote, layout_step_bytes(&b->l, b->s)), local;
	unsigned at = 0;

	for (unsigned i = 0; i < b->l.step[b->s].nsge; i++) {
		local = place(b, &st->local[i], st->local[i].len);
		if (st->flags & CHAIN_LANES && is_opcode(&st->local[i])) {
			at += local.len;
			continue;
		}
		for (unsigned k = 0; k < local.len; k++, at++) {
			struct cell c = st->verb == CHAIN_READ ? load(b, &remote, at) : load(b, &local, k);

			if (st->verb == CHAIN_READ)
				store(b, &local, k, &c);
			else
				store(b, &remote, at, &c);
		}
	}
}

/* Byte @k, from the lowest, of the operand at @field; NULL if the verb has none */
static const struct cell *operand(struct bounds *b, enum chain_field field, unsigned k)
{
	unsigned size;
	int at = chain_field_at(b->l.d->steps[b->s].verb, field, 0, &size);

	return at < 0 ? NULL : &wqe(b, b->s)[at + (int)(OPERAND_BYTES - 1 - k)];
}

static bool is_const(const struct cell *c, uint8_t *v)
{
	for (unsigned i = 0; i < 256; i++)
		if (is_only(c, (uint8_t)i)) {
			*v = (uint8_t)i;
			return true;
		}
	return false;
}

/* A masked CAS that always runs, and looks at one byte only, replaces the value that it looks for */
static void replace_sought(struct bounds *b, const struct layout_range *word)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	unsigned sought = OPERAND_BYTES;
	uint8_t v;
	struct cell *c;

	if (st->verb != CHAIN_MASKED_CAS || st->flags & CHAIN_DORMANT || wqe(b, b->s)[WQE_OPCODE].written)
		return;
	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		if (is_only(operand(b, CHAIN_F_COMPARE_MASK, k), 0))
			continue;
		if (sought != OPERAND_BYTES || !is_only(operand(b, CHAIN_F_COMPARE_MASK, k), 0xff))
			return;
		sought = k;
	}
	if (sought == OPERAND_BYTES || !is_only(operand(b, CHAIN_F_SWAP_MASK, sought), 0xff) ||
		!is_const(operand(b, CHAIN_F_COMPARE, sought), &v))
		return;
	c = cells(b, word) + sought;
	memcpy(c->failed, c->values, sizeof(c->failed));
	c->settled = (uint8_t)(st->queue + 1);
	c->values[v / 64] &= ~(1ull << v % 64);
}

static void compare_and_swap(struct bounds *b, const struct layout_range *word)
{
	replace_sought(b, word);
	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *mask = operand(b, CHAIN_F_SWAP_MASK, k);

		if (!mask || !is_only(mask, 0))
			store(b, word, k, operand(b, CHAIN_F_SWAP, k));
	}
}

/* All sums of the values of @x and @y, and of those plus one if @carry. Whether one of them goes beyond the
 * byte */
static bool add_values(struct cell *sum, const struct cell *x, const struct cell *y, bool carry)
{
	bool beyond = false;

	for (unsigned i = 0; i < 256; i++)
		for (unsigned j = 0; j < 256 && can_be(x, (uint8_t)i); j++)
			for (unsigned c = 0; c <= carry && can_be(y, (uint8_t)j); c++) {
				unsigned v = (i + j + c) & 0xff;

				sum->values[v / 64] |= 1ull << v % 64;
				beyond |= i + j + c > 0xff;
			}
	return beyond;
}

/* A carry is a decision, as that of a CAS is: the bytes that it came from do not count as a source. A
 * boundary stops it */
static void add(struct bounds *b, const struct layout_range *word)
{
	bool carry = false;

	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *more = operand(b, CHAIN_F_ADD, k);
		const struct cell *boundary = operand(b, CHAIN_F_BOUNDARY, k);
		struct cell now = load(b, word, k), sum = {.from = more->from | now.from};

		if (b->shared && (carry || !is_only(more, 0))) { /* how often, with a loop nobody knows */
			memset(sum.values, 0xff, sizeof(sum.values));
			carry = true;
		} else {
			carry = add_values(&sum, &now, more, carry);
		}
		store(b, word, k, &sum);
		if (boundary && !boundary->values[0] && !boundary->values[1]) /* all have the top bit */
			carry = false;
	}
}

static void atomic(struct bounds *b)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	struct layout_range word = place(b, &st->remote, OPERAND_BYTES), old;

	if (b->l.step[b->s].nsge) {
		old = place(b, &st->local[0], OPERAND_BYTES);
		for (unsigned k = 0; k < OPERAND_BYTES; k++) {
			struct cell c = load(b, &word, k);

			store(b, &old, k, &c);
		}
	}
	if (!is_ours(b, &word))
		return;
	if (st->verb == CHAIN_CAS || st->verb == CHAIN_MASKED_CAS)
		compare_and_swap(b, &word);
	else
		add(b, &word);
}

static void take_request(struct bounds *b)
{
	b->s = LAYOUT_NONE;
	for (unsigned a = 0; a < b->l.d->nargs; a++) {
		struct layout_range r = place(b, &b->l.d->args[a], b->l.d->args[a].len);

		for (unsigned k = 0; k < r.len; k++)
			store(b, &r, k, &b->of_client);
	}
}

static void run_all(struct bounds *b)
{
	take_request(b);
	for (b->s = 0; b->s < b->l.d->nsteps; b->s++) {
		const struct chain_verb_info *v = chain_verb_info(b->l.d->steps[b->s].verb);

		if (v->atomic_bytes)
			atomic(b);
		else if (v->remote)
			copy(b);
	}
}

/* ---- what may not come of it ------------------------------------------------------------ */

static struct chain_error_at here(const struct bounds *b)
{
	return layout_at(&b->l, b->s);
}

/* What is written of a field: its first byte that can come from @from, or NULL */
static const struct cell *written(const struct cell *c, unsigned n, enum origin from)
{
	for (; n--; c++)
		if (c->written && c->from >> from & 1)
			return c;
	return NULL;
}

static const struct cell *written_at_all(const struct cell *c, unsigned n)
{
	for (; n--; c++)
		if (c->written)
			return c;
	return NULL;
}

static unsigned writer(const struct cell *c)
{
	unsigned o = ORIGINS - 1;

	while (c->by[o] == NOBODY)
		o--;
	return c->by[o];
}

/* Bytes of regions and requests may not get into @n bytes at @c, which are the @what of the step */
static int check_ours(struct bounds *b, const struct cell *c, unsigned n, const char *what)
{
	const struct cell *data = written(c, n, CLIENT);
	struct chain_error_at other;
	unsigned from = CLIENT;

	if (!data) {
		from = REGION;
		data = written(c, n, REGION);
	}
	if (!data)
		return 0;
	other = layout_at(&b->l, data->by[from]);
	if (from == CLIENT)
		return layout_refuse(&b->l, FOREIGN_REQUEST, .at = here(b), .other = other, .name = what);
	return layout_refuse(&b->l, FOREIGN_REGION, .at = here(b), .other = other, .name = what);
}

static bool writes_byte(struct bounds *b, unsigned s, const struct layout_range *byte)
{
	const struct chain_step *st = &b->l.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct layout_range r;

	for (unsigned i = 0; v->scatters && i < b->l.step[s].nsge; i++) {
		r = place(b, &st->local[i], st->local[i].len);
		if (layout_overlap(&r, byte))
			return true;
	}
	if (!v->remote || st->verb == CHAIN_READ)
		return false;
	r = place(b, &st->remote, layout_step_bytes(&b->l, s));
	return layout_overlap(&r, byte);
}

/* The CAS of @s replaces the control segment of step @to as a whole, with the opmod of its verb */
static bool replaces_control(struct bounds *b, unsigned s, unsigned to)
{
	const struct chain_step *st = &b->l.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(b->l.d->steps[to].verb);
	unsigned size;
	int at = chain_field_at(st->verb, CHAIN_F_SWAP, 0, &size);
	struct layout_range r;

	if (st->verb != CHAIN_CAS)
		return false;
	r = place(b, &st->remote, OPERAND_BYTES);
	return r.sym == CHAIN_SYM_QUEUE && r.index == b->l.d->steps[to].queue &&
	       r.offset == (uint64_t)b->l.step[to].at * CHAIN_WQEBB &&
	       is_only(&wqe(b, s)[at + OPERAND_BYTES - 1 - WQE_OPMOD], v->opmod);
}

/*
 * The step has another opmod only while it is a NOP: what makes more of it replaces the opmod as well, and
 * nothing writes to that afterwards. In a loop there is no afterwards.
 */
static bool opmod_rests(struct bounds *b)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	struct layout_range mod = {.sym = CHAIN_SYM_QUEUE,
		.index = st->queue,
		.offset = (uint64_t)b->l.step[b->s].at * CHAIN_WQEBB + WQE_OPMOD,
		.len = 1};
	struct layout_range op = mod;
	bool replaced = false;

	op.offset += WQE_OPCODE - WQE_OPMOD;
	if (!(st->flags & CHAIN_DORMANT) || b->in_loop)
		return false;
	for (unsigned s = 0; s < b->l.d->nsteps; s++)
		if (replaces_control(b, s, b->s))
			replaced = true;
		else if (writes_byte(b, s, &op) || (replaced && writes_byte(b, s, &mod)))
			return false;
	return true;
}

/* An opmod is half of an opcode */
static int check_opmod(struct bounds *b)
{
	const struct chain_verb_info *v = chain_verb_info(b->l.d->steps[b->s].verb);
	const struct cell *c = &wqe(b, b->s)[WQE_OPMOD];
	unsigned mod = 0;

	if (is_only(c, v->opmod) || opmod_rests(b))
		return 0;
	if (check_ours(b, c, 1, "opmod"))
		return CHAIN_REFUSED;
	while (mod == v->opmod || !can_be(c, (uint8_t)mod))
		mod++;
	assert(mod < 256 && "or the byte would have its only value");
	return layout_refuse(&b->l, OPMOD, .at = here(b), .other = layout_at(&b->l, writer(c)),
		.number = {mod, v->opmod}, .what = v->name);
}

static int check_control(struct bounds *b)
{
	const struct chain_verb_info *v = chain_verb_info(b->l.d->steps[b->s].verb);
	const struct cell *c = wqe(b, b->s), *other = NULL;

	if (check_ours(b, &c[WQE_OPCODE], 1, "opcode"))
		return CHAIN_REFUSED;
	for (unsigned op = 0; op < 256; op++)
		if (can_be(&c[WQE_OPCODE], (uint8_t)op) && op != WQE_OP_NOP && op != v->opcode)
			return layout_refuse(&b->l, OPCODE, .at = here(b),
				.other = layout_at(&b->l, writer(&c[WQE_OPCODE])), .number = {op},
				.what = v->name);
	if (check_opmod(b))
		return CHAIN_REFUSED;
	if (!is_only(&c[WQE_DSCOUNT], b->l.step[b->s].ds))
		return layout_refuse(
			&b->l, WQE_SIZE, .at = here(b), .other = layout_at(&b->l, writer(&c[WQE_DSCOUNT])));
	for (unsigned i = 0; i < WQE_DSCOUNT; i++)
		if (i != WQE_OPCODE && c[i].written)
			other = &c[i];
	if (other && !b->l.d->ignores_index)
		return layout_refuse(&b->l, CONTROL, .at = here(b), .other = layout_at(&b->l, writer(other)));
	if (v->class == CHAIN_CLASS_SYNC)
		return check_ours(b, &c[WQE_SYNC_INDEX], 4, "index");
	return 0;
}

/* Only there a key spans the place and nothing else. What a loop and its caller share has the form of a
 * region, but holds variables and opcodes of both */
static bool is_bounded(const struct bounds *b, const struct chain_place *p)
{
	return p->kind == CHAIN_AT_REGION && !(b->shared && p->index == b->l.d->shared);
}

static const struct chain_region *region_of(const struct bounds *b, const struct chain_place *p)
{
	static const struct chain_region unknown = {.name = ""};

	return b->l.d->regions ? &b->l.d->regions[p->index] : &unknown;
}

/* @p is where the step reads or @writes; its address is at @addr, and it has @len bytes at most */
static int check_place(
	struct bounds *b, const struct chain_place *p, const struct cell *addr, uint64_t len, bool writes)
{
	const struct cell *moved = written_at_all(addr, ADDR_BYTES);
	const struct chain_region *region;

	if (!writes && p->kind == CHAIN_AT_FIELD &&
		(p->field == CHAIN_F_REMOTE_KEY || p->field == CHAIN_F_LOCAL_KEY))
		return layout_refuse(&b->l, READS_KEY, .at = here(b));
	if (p->kind != CHAIN_AT_REGION) {
		if (!moved)
			return 0;
		if (p->kind == CHAIN_AT_SLOT)
			return layout_refuse(
				&b->l, ADDRESS_SLOT, .at = here(b), .other = layout_at(&b->l, writer(moved)));
		return layout_refuse(
			&b->l, ADDRESS_OWN, .at = here(b), .other = layout_at(&b->l, writer(moved)));
	}
	region = region_of(b, p);
	if (moved && !is_bounded(b, p))
		return layout_refuse(
			&b->l, ADDRESS_SHARED, .at = here(b), .other = layout_at(&b->l, writer(moved)));
	if (b->l.d->loop && b->l.d->steps[b->s].queue == 0 && p->index == b->l.d->shared)
		return layout_refuse(&b->l, ANSWER_SHARED, .at = here(b));
	if (!moved && p->from + len > b->needs.region[p->index])
		b->needs.region[p->index] = p->from + len;
	if (!moved && region->size && p->from + len > region->size)
		return layout_refuse(&b->l, REGION_END, .at = here(b), .name = region->name,
			.number = {p->from, p->from + len - 1, region->size});
	if (!writes)
		return 0;
	if (!(region->flags & CHAIN_WRITABLE))
		return layout_refuse(&b->l, NOT_WRITABLE, .at = here(b), .name = region->name);
	if (written(addr, ADDR_BYTES, CLIENT) && !(region->flags & CHAIN_STEERED))
		return layout_refuse(&b->l, NOT_STEERED, .at = here(b), .name = region->name);
	return 0;
}

/* A data segment whose length is replaced, and @remote, what is on the other side of it */
static int check_length(struct bounds *b, const struct chain_place *p, const struct cell *len)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	const struct cell *data = written_at_all(len, LEN_BYTES);

	if (!data)
		return 0;
	if (!is_bounded(b, p) || (st->queue != 0 && !is_bounded(b, &st->remote)))
		return layout_refuse(
			&b->l, LENGTH_BEYOND, .at = here(b), .other = layout_at(&b->l, writer(data)));
	data = written(len, LEN_BYTES, CLIENT);
	if (data)
		return layout_refuse(
			&b->l, LENGTH_REQUEST, .at = here(b), .other = layout_at(&b->l, data->by[CLIENT]));
	if (st->queue == 0 && !p->max)
		return layout_refuse(&b->l, LENGTH_UNKNOWN, .at = here(b));
	return 0;
}

static int check_data(struct bounds *b)
{
	const struct chain_step *st = &b->l.d->steps[b->s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	const struct cell *c = wqe(b, b->s);
	uint64_t bytes = v->atomic_bytes ? OPERAND_BYTES : 0;

	for (unsigned i = 0; i < b->l.step[b->s].nsge; i++) {
		const struct chain_place *p = &st->local[i];
		const struct cell *sge = c + v->sge_at + i * WQE_DS;
		uint64_t len = p->max > p->len ? p->max : p->len;

		if (check_length(b, p, sge + WQE_SGE_LEN) ||
			check_place(b, p, sge + WQE_SGE_ADDR, len, v->scatters))
			return CHAIN_REFUSED;
		bytes += v->atomic_bytes ? 0 : len;
	}
	if (!v->remote)
		return 0;
	if (check_place(b, &st->remote, c + WQE_RADDR, bytes, st->verb != CHAIN_READ))
		return CHAIN_REFUSED;
	if (st->remote.kind != CHAIN_AT_SLOT || st->remote.from + bytes <= b->needs.reply)
		return 0;
	if (b->l.d->slot_size && st->remote.from + bytes > b->l.d->slot_size)
		return layout_refuse(&b->l, SLOT_END, .at = here(b),
			.number = {st->remote.from + bytes, b->l.d->slot_size});
	if (st->remote.from + bytes > UINT32_MAX)
		return layout_refuse(&b->l, REPLY_BYTES, .at = here(b), .number = {st->remote.from + bytes});
	b->needs.reply = (uint32_t)(st->remote.from + bytes);
	return 0;
}

/* ----------------------------------------------------------------------------------------- */

static void free_cells(struct bounds *b)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		free(b->queue[q]);
	free(b->scratch);
}

static void free_bounds(struct bounds **b)
{
	if (!*b)
		return;
	free_cells(*b);
	free((*b)->shared);
	free(*b);
}

static int check_steps(struct bounds *b)
{
	for (b->s = 0; b->s < b->l.d->nsteps; b->s++)
		if (check_control(b) || check_data(b))
			return CHAIN_REFUSED;
	return 0;
}

/* ---- a loop and who calls it -------------------------------------------------------------------- */

/* @d from the beginning, with what is shared as it has become. 0, CHAIN_REFUSED, -ENOMEM */
static int begin(struct bounds *b, const struct chain_desc *d)
{
	struct bounds old = *b;

	*b = (struct bounds){
		.l = {.err = old.l.err}, .shared = old.shared, .nshared = old.nshared, .needs = old.needs};
	free_cells(&old);
	for (uint32_t i = 0; i < b->nshared; i++)
		for (unsigned o = 0; o < ORIGINS; o++)
			if (b->shared[i].by[o] != NOBODY)
				b->shared[i].by[o] = BEYOND;
	if (layout_make(&b->l, d))
		return CHAIN_REFUSED;
	return make_cells(b);
}

static int make_shared(struct bounds *b, const struct chain_desc *d)
{
	b->nshared = (uint32_t)d->regions[d->shared].size;
	b->shared = calloc(b->nshared + 1, sizeof(*b->shared));
	if (!b->shared)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->nshared; i++)
		one_value(&b->shared[i], d->shared_init[i]);
	forget_writers(b->shared, b->nshared);
	return 0;
}

static void hash(uint64_t *h, const struct cell *c, size_t n)
{
	for (; n--; c++) {
		for (unsigned i = 0; i < 256 / 64; i++)
			*h = (*h ^ c->values[i]) * 0x9e3779b97f4a7c15 + (*h >> 29);
		*h = (*h ^ c->from) * 0x9e3779b97f4a7c15 + (*h >> 29);
	}
}

static uint64_t hash_all(const struct bounds *b)
{
	uint64_t h = 1;

	for (unsigned q = 0; q < b->l.d->nqueues; q++)
		hash(&h, b->queue[q], (size_t)b->l.wqebbs[q] * CHAIN_WQEBB);
	hash(&h, b->scratch, b->l.scratch_size);
	hash(&h, b->shared, b->nshared);
	return h;
}

/* Iterations until nothing becomes possible that was not before */
static int iterate(struct bounds *b)
{
	uint64_t before = 0, now = 1;

	for (unsigned i = 0; i < ROUNDS && before != now; i++) {
		before = now;
		run_all(b);
		now = hash_all(b);
	}
	return before == now ? 0 : layout_refuse(&b->l, LOOP_UNCLEAR);
}

/* The loop as the chain that an iteration is: with a reply, which does nothing, and the queue that is called
 * back */
static int check_loop(struct bounds *b, const struct chain_desc *d, const struct chain_desc *loop)
{
	static const struct chain_queue_desc queues[] = {{"reply", 0}, {"loop", 0}, {"call", 0}};
	struct chain_step *steps = calloc(loop->nsteps + 2, sizeof(*steps));
	struct chain_desc as_chain = *loop;
	int r = -ENOMEM;

	if (!steps)
		return -ENOMEM;
	as_chain.steps = steps;
	as_chain.nsteps = loop->nsteps + 2;
	as_chain.queues = queues;
	as_chain.nqueues = 3;
	as_chain.shared = d->shared;
	for (unsigned s = 0; s < loop->nsteps; s++) {
		steps[s] = loop->steps[s];
		steps[s].queue = 1;
		steps[s].target = steps[s].target ? 2 : 1;
	}
	steps[loop->nsteps] = (struct chain_step){.queue = 0};
	steps[loop->nsteps + 1] = (struct chain_step){.queue = 2};
	if (as_chain.nsteps > CHAIN_MAX_STEPS)
		r = layout_refuse(&b->l, STEPS, .number = {loop->nsteps, CHAIN_MAX_STEPS - 2});
	else
		r = begin(b, &as_chain);
	b->in_loop = true;
	if (r == 0)
		r = iterate(b);
	if (r == 0)
		r = check_steps(b);
	b->l.d = NULL;
	free(steps);
	return r;
}

/* What one of the two puts there the other finds there, and so again with both until neither is surprised */
static int check_both(struct bounds *b, const struct chain_desc *d)
{
	uint64_t before = 0, now = 1;
	int r = make_shared(b, d);

	while (r == 0 && before != now) {
		before = now;
		r = begin(b, d);
		if (r)
			return r;
		run_all(b);
		r = check_loop(b, d, d->loop);
		now = 1;
		hash(&now, b->shared, b->nshared);
	}
	return r;
}

int chain_check_bounds(const struct chain_desc *d, struct chain_bounds *bounds, struct chain_error *err)
{
	__attribute__((cleanup(free_bounds))) struct bounds *b = calloc(1, sizeof(*b));
	int r = 0;

	if (!b)
		return -ENOMEM;
	b->l.err = err;
	*err = (struct chain_error){0};
	if (d->loop)
		r = check_both(b, d);
	if (r == 0)
		r = begin(b, d);
	if (r == 0) {
		run_all(b);
		r = check_steps(b);
	}
	if (r == 0 && bounds)
		*bounds = b->needs;
	return r;
}
