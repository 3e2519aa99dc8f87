/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program names becomes places: operands, places in regions whose addresses the program computes, and
 * destinations.
 */
#include "reddnd/program/lower/ir.h"

#include <assert.h>

static struct place web_place(const struct web *w)
{
	return (struct place){.kind = CHAIN_AT_SCRATCH, .web = w, .len = w->var->type.bytes};
}

/* The argument as it is in memory: of that, one copy serves all */
static struct place arg_place(struct lower *l, const struct ast_arg *arg)
{
	bool reversed = arg->type.kind == AST_UINT && arg->type.order == AST_LE;
	uint16_t bytes = (uint16_t)arg->type.bytes;

	if (!l->arg_at[arg->index].word) {
		l->arg_at[arg->index].word = lower_word(l, arg->name, bytes);
		lower_use_arg(l, arg, lower_scratch(l->arg_at[arg->index].word, 0, bytes), 0, bytes, reversed,
			false);
	}
	return lower_scratch(l->arg_at[arg->index].word, 0, bytes);
}

/* A reply may still be on its way when the next request gives new values to what the loop shares */
static struct place own_copy(struct lower *l, const struct op *reply, struct place shared)
{
	struct op op = *reply;
	struct place own = lower_scratch(lower_word(l, "answer", (uint16_t)shared.len), 0, shared.len);

	op.queue = 1;
	lower_copy(l, &op, shared, own, "answer");
	return own;
}

struct place lower_source(
	struct lower *l, const struct op *op, struct step *user, unsigned sge, const struct ast_operand *o)
{
	struct place p = {0};

	switch ((enum ast_operand_kind)o->kind) {
	case AST_CONST:
		return lower_scratch(lower_constant(l, &o->type, o->value), 0, o->type.bytes);
	case AST_LOCATOR:
		assert(!"a locator is an operand of a CAS");
		break;
	case AST_ARG:
		p = arg_place(l, o->arg);
		break;
	case AST_PLACE:
		if (o->place->kind == AST_AT_VAR) {
			struct web *w = lower_web_of(op, o->place);

			lower_place_web(l, w);
			p = web_place(w);
			if (w->shared && op->queue == 0)
				p = own_copy(l, op, p);
		} else if (o->place->kind == AST_AT_FIELD) {
			unsigned size, bytes = o->type.bytes;
			struct step *s = lower_step_of(l, o->place->verb);

			chain_field_at(s->verb, o->place->field, o->place->sge, &size);
			p = lower_field(s, o->place->field, o->place->sge,
				o->place->one_byte ? o->place->byte : size - bytes, bytes);
		} else if (o->place->kind == AST_AT_LENGTH) {
			p = (struct place){.kind = CHAIN_AT_LENGTH, .len = o->type.bytes};
		} else {
			p = lower_region(l, op, user, (int)sge, o->place, o->place->at);
			p.len = o->place->type.bytes;
		}
		break;
	}
	p.reversed = o->swab;
	return p;
}

/* ---- addresses -------------------------------------------------------------------------------- */

static struct place low_bytes_of_address(struct step *s, int sge, uint32_t bytes)
{
	return lower_field(s, sge < 0 ? CHAIN_F_REMOTE_ADDR : CHAIN_F_LOCAL_ADDR, sge < 0 ? 0 : (unsigned)sge,
		8 - bytes, bytes);
}

static bool is_le(const struct ast_type *t)
{
	return t->kind == AST_UINT && t->order == AST_LE && t->bytes > 1;
}

static uint32_t term_bytes(const struct ast_term *t)
{
	return t->arg ? t->arg->type.bytes : t->var->type.bytes;
}

/* Adds a term to the little-endian sum in @sum */
static void add_term(struct lower *l, const struct op *op, struct word *sum, const struct ast_term *t)
{
	uint32_t bytes = term_bytes(t);
	struct step *add = lower_step(l, op, CHAIN_FETCH_ADD, "sum");
	struct place field = lower_field(add, CHAIN_F_ADD, 0, 8 - bytes, bytes);

	add->remote = lower_scratch(sum, 0, WORD);
	if (t->arg) {
		lower_use_arg(l, t->arg, field, 0, (uint16_t)bytes, false, false);
	} else {
		struct web *w = lower_web_of(op, t);

		lower_place_web(l, w);
		field.reversed = is_le(&w->var->type);
		lower_copy(l, op, web_place(w), field, "term");
	}
	lower_append(l, add);
}

/* That the sum can have, as far as they count */
static uint32_t bytes_of_sum(const struct ast_place *p, uint64_t constant)
{
	uint64_t most = constant;
	uint32_t bytes = 1;

	for (unsigned i = 0; i < p->nterms; i++)
		most += (1ull << 8 * (term_bytes(&p->term[i]) < PROGRAM_MAX_OFFSET ? term_bytes(&p->term[i])
										   : PROGRAM_MAX_OFFSET)) -
			1;
	while (bytes < PROGRAM_MAX_OFFSET && most >> 8 * bytes)
		bytes++;
	return bytes;
}

/* The address is the sum of a constant and what the terms say when the program runs */
static void sum_terms(struct lower *l, const struct op *op, struct step *s, int sge,
	const struct ast_place *p, uint64_t constant)
{
	struct word *sum = lower_word(l, "offset", WORD);
	uint32_t bytes = bytes_of_sum(p, constant);
	unsigned first = 0;

	for (unsigned i = 0; i < WORD; i++)
		sum->init[i] = (uint8_t)(constant >> 8 * i);
	if (constant == 0) { /* the first one is the sum to begin with */
		const struct ast_term *t = &p->term[first++];
		struct place to = lower_scratch(sum, 0, term_bytes(t));

		if (t->arg) {
			lower_use_arg(l, t->arg, to, 0, (uint16_t)to.len, true, false);
		} else {
			struct web *w = lower_web_of(op, t);

			lower_place_web(l, w);
			to.reversed = !is_le(&w->var->type);
			lower_copy(l, op, web_place(w), to, "term");
		}
	}
	for (unsigned i = first; i < p->nterms; i++)
		add_term(l, op, sum, &p->term[i]);
	struct place address = low_bytes_of_address(s, sge, bytes);

	address.reversed = true;
	lower_copy(l, op, lower_scratch(sum, 0, bytes), address, "address");
}

struct place lower_region(struct lower *l, const struct op *user, struct step *s, int sge,
	const struct ast_place *p, uint64_t constant)
{
	struct place at = {
		.kind = CHAIN_AT_REGION, .region = (uint8_t)p->region->index, .from = (uint32_t)constant};
	const struct ast_term *t = p->term;
	struct op code = *user;
	const struct op *op = &code;

	if (code.queue == 0) /* which can only reach the client: the address is computed elsewhere */
		code.queue = (uint8_t)(1 + l->p->nqueues);

	if (p->nterms == 0)
		return at;
	if (p->nterms > 1 || constant) {
		at.from = 0;
		sum_terms(l, op, s, sge, p, constant);
		return at;
	}
	if (t->arg) {
		lower_use_arg(l, t->arg, low_bytes_of_address(s, sge, t->arg->type.bytes), 0,
			(uint16_t)t->arg->type.bytes, false, false);
		return at;
	}
	struct web *w = lower_web_of(op, t);

	if (w->kind == WEB_ADDRESS) {
		if (w->ndefs == 0)
			at.from = (uint32_t)w->var->init;
		return at;
	}
	lower_place_web(l, w);
	struct place from = web_place(w);

	if (from.len > PROGRAM_MAX_OFFSET) { /* above are those of the region's own address */
		from.from = is_le(&w->var->type) ? 0 : from.len - PROGRAM_MAX_OFFSET;
		from.len = PROGRAM_MAX_OFFSET;
	}
	struct place address = low_bytes_of_address(s, sge, from.len);

	address.reversed = is_le(&w->var->type);
	lower_copy(l, op, from, address, "address");
	return at;
}

/* An address that is patched is that of the structure, not of the field that is wanted first */
static uint32_t patched_lead(const struct ast_verb *v)
{
	return v && v->kind == AST_READ && v->patched & 1u << CHAIN_F_REMOTE_ADDR ? v->lead : 0;
}

void lower_read_region(struct lower *l, const struct op *op, struct step *s, const struct ast_place *p)
{
	uint32_t skip = lower_skip(p);

	if (!skip)
		skip = patched_lead(op->verb);
	s->remote = lower_region(l, op, s, -1, p, p->at - skip);
	if (skip) {
		s->skips = true;
		*lower_local(l, s) = lower_scratch(lower_word(l, "skipped", (uint16_t)skip), 0, skip);
	}
}

/* The address that the web is, in the WQE of its only use */
static struct place address_of(const struct web *w)
{
	const struct op *op = w->use;
	const struct ast_place *p = op->test ? op->test->cond->left.place : op->verb->place;
	struct step *s = op->test ? op->test->load : op->main;
	bool mov = op->verb && op->verb->kind == AST_MOV, to_region = mov && p->kind == AST_AT_REGION;
	int sge = -1;

	for (unsigned i = 0; op->verb && i < op->verb->nsources; i++) {
		const struct ast_operand *o = &op->verb->source[i];

		if (o->kind == AST_PLACE && o->place->kind == AST_AT_REGION &&
			(w->use_key == &o->place->term[0] || w->use_key == &o->place->term[1]))
			sge = mov && !to_region ? -1 : (int)i;
	}
	return low_bytes_of_address(s, sge, w->var->type.bytes);
}

struct place lower_target(struct lower *l, const struct op *op, const struct ast_place *p, uint32_t bytes)
{
	unsigned size;
	struct step *s;
	struct web *w;

	if (p->kind == AST_AT_FIELD) {
		s = lower_step_of(l, p->verb);
		chain_field_at(s->verb, p->field, p->sge, &size);
		assert(bytes <= size);
		return lower_field(s, p->field, p->sge, p->one_byte ? p->byte : size - bytes, bytes);
	}
	assert(p->kind == AST_AT_VAR);
	w = lower_web_of(op, p);
	switch ((enum web_kind)w->kind) {
	case WEB_ADDRESS:
		return address_of(w);
	case WEB_UNUSED:
		return (struct place){.len = bytes};
	case WEB_MEMORY:
		lower_place_web(l, w);
		break;
	case WEB_TESTED:
		break;
	}
	return web_place(w);
}
