/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * max, min, and, or, xor, add and sub of two numbers. By CALC: a WRITE between aligned words. Or, in a loop
 * without a bound and on a device that does not do it, by an atomic on a word with one of the numbers; a max
 * or a min is compared then (flat.c).
 */
#include "reddnd/program/lower/ir.h"

static const struct {
	uint8_t calc, atomic; /* enum chain_verb */
} verbs[] = {
	[AST_CALC_ADD] = {CHAIN_CALC_ADD, CHAIN_FETCH_ADD},
	[AST_CALC_MAX] = {CHAIN_CALC_MAX, 0},
	[AST_CALC_MIN] = {CHAIN_CALC_XOR, 0},
	[AST_CALC_AND] = {CHAIN_CALC_AND, CHAIN_MASKED_CAS},
	[AST_CALC_OR] = {CHAIN_CALC_OR, CHAIN_MASKED_CAS},
	[AST_CALC_XOR] = {CHAIN_CALC_XOR, CHAIN_MASKED_FETCH_ADD},
	[AST_CALC_SUB] = {CHAIN_CALC_XOR, CHAIN_FETCH_ADD},
};

void lower_calc_begin(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	const unsigned n = v->calc == AST_CALC_SUB ? 6 : v->calc == AST_CALC_MIN ? 4 : 2;

	if (lower_has_calc(l, v, op->part)) {
		op->main = lower_step(l, op, verbs[v->calc].calc, NULL);
		op->operands = lower_word(l, "operands", (uint16_t)(n * CHAIN_CALC_BYTES));
	} else {
		op->main = lower_step(l, op, verbs[v->calc].atomic, NULL);
	}
}

/* The low bytes of the 8 of a number at @to */
static struct place low_bytes(struct place to, bool le, uint32_t bytes)
{
	if (!le)
		to.from += WORD - bytes;
	to.len = bytes;
	return to;
}

/* Operand @i, no constant, to the low bytes of the 8 at @to; those above are 0 */
static void load(struct lower *l, struct op *op, unsigned i, struct place to, bool le)
{
	const struct ast_operand *o = &op->verb->source[i];
	const uint32_t bytes = o->type.bytes;
	struct step *read;

	to = low_bytes(to, le, bytes);
	if (o->kind == AST_ARG) {
		lower_use_arg(l, o->arg, to, 0, (uint16_t)bytes, le, false);
		return;
	}
	to.reversed = bytes > 1 && (o->type.order == AST_LE) != le;
	if (o->place->kind == AST_AT_VAR) {
		struct place from = lower_source(l, op, op->main, i, o);

		if (!op->operands || from.web->part[0].word != op->operands) /* else it lies there */
			lower_copy(l, op, from, to, "operand");
		return;
	}
	read = lower_step(l, op, CHAIN_READ, "operand");
	lower_read_region(l, op, read, o->place);
	*lower_local(l, read) = to;
	read->must = true;
	lower_append(l, read);
}

/* The low bytes of the 8 at @from go where the result goes */
static void store(struct lower *l, struct op *op, struct place from, bool le)
{
	const struct ast_place *p = op->verb->place;
	const bool reversed = p->type.bytes > 1 && (p->type.order == AST_LE) != le;
	struct step *write;
	struct place to;

	from = low_bytes(from, le, p->type.bytes);
	if (p->kind != AST_AT_REGION) {
		to = lower_target(l, op, p, p->type.bytes);
		to.reversed = reversed;
		lower_copy(l, op, from, to, "result")->must = true;
		return;
	}
	write = lower_step(l, op, CHAIN_WRITE, "result");
	from.reversed = reversed;
	*lower_local(l, write) = from;
	write->remote = lower_region(l, op, write, -1, p, p->at);
	write->must = true;
	lower_append(l, write);
}

/* ---- CALC ------------------------------------------------------------------------------------- */

/* Of operands @first and the next one: scratch that nothing else uses, whether or not its guard holds */
static void append_calc(struct lower *l, struct op *op, struct step *s, unsigned first, struct place to)
{
	to.len = CHAIN_CALC_BYTES;
	s->remote = to;
	*lower_local(l, s) = lower_scratch(op->operands, first * CHAIN_CALC_BYTES, 2 * CHAIN_CALC_BYTES);
	lower_append(l, s);
}

/* The minimum of a and b is a ^ b ^ max(a, b): two more steps, which no operand has to be inverted for */
static unsigned append_min(struct lower *l, struct op *op)
{
	struct step *max = lower_step(l, op, CHAIN_CALC_MAX, "max");
	struct step *both = lower_step(l, op, CHAIN_CALC_XOR, "xor");

	append_calc(l, op, max, 0, lower_scratch(op->operands, 2 * CHAIN_CALC_BYTES, WORD));
	append_calc(l, op, both, 0, lower_scratch(op->operands, 3 * CHAIN_CALC_BYTES, WORD));
	return 2;
}

/* Where the result is what it is assigned to, an operand of another calculation for example, but for a number
 * of which a narrower place takes a part. NULL: it has to be copied */
static const struct part *result_of(struct lower *l, const struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct web *w = v->place->kind == AST_AT_VAR ? lower_web_of(op, v->place) : NULL;

	if (!w || w->kind != WEB_MEMORY ||
		((v->calc == AST_CALC_ADD || v->calc == AST_CALC_SUB) && w->var->type.bytes < WORD))
		return NULL;
	lower_place_web(l, w);
	return lower_is_result(w) || (w->use->operands && w->part[0].word == w->use->operands) ? w->part
											       : NULL;
}

/* a - b is ~(~a + b) */
static unsigned append_sub(struct lower *l, struct op *op)
{
	struct step *not = lower_step(l, op, CHAIN_CALC_XOR, "not");
	struct step *sum = lower_step(l, op, CHAIN_CALC_ADD, "sum");

	wqe_put64(op->operands->init + CHAIN_CALC_BYTES, UINT64_MAX);
	wqe_put64(op->operands->init + 5 * CHAIN_CALC_BYTES, UINT64_MAX);
	append_calc(l, op, not, 0, lower_scratch(op->operands, 2 * CHAIN_CALC_BYTES, WORD));
	append_calc(l, op, sum, 2, lower_scratch(op->operands, 4 * CHAIN_CALC_BYTES, WORD));
	return 4;
}

static void by_calc(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	const struct part *place = result_of(l, op);
	struct word *result = place ? place->word : lower_word(l, "result", CHAIN_CALC_BYTES);
	unsigned first = 0;

	for (unsigned i = 0; i < v->nsources; i++) {
		struct place to = lower_calc_bytes(op, i, WORD);

		if (v->source[i].kind == AST_CONST)
			wqe_put64(op->operands->init + to.from, v->source[i].value);
		else
			load(l, op, i, to, false);
	}
	if (v->calc == AST_CALC_MIN)
		first = append_min(l, op);
	if (v->calc == AST_CALC_SUB)
		first = append_sub(l, op);
	op->main->must = place;
	append_calc(l, op, op->main, first,
		lower_scratch(result, place ? place->at / CHAIN_CALC_BYTES * CHAIN_CALC_BYTES : 0,
			CHAIN_CALC_BYTES));
	if (!place)
		store(l, op, lower_scratch(result, 0, WORD), false);
}

/* ---- an atomic -------------------------------------------------------------------------------- */

/* Operand @i into a field of the WQE, whose value is then the constant that is returned */
static uint64_t load_field(struct lower *l, struct op *op, unsigned i, enum chain_field field)
{
	const struct ast_operand *o = &op->verb->source[i];

	if (o->kind == AST_CONST)
		return o->value;
	load(l, op, i, lower_field(op->main, field, 0, 0, WORD), false);
	return 0;
}

/* Operand @i into the word */
static void load_word(struct lower *l, struct op *op, unsigned i)
{
	const struct ast_operand *o = &op->verb->source[i];
	struct word *word = op->main->remote.word;

	if (o->kind != AST_CONST)
		load(l, op, i, op->main->remote, true);
	for (unsigned n = 0; o->kind == AST_CONST && n < WORD; n++)
		word->init[n] = (uint8_t)(o->value >> 8 * n);
}

/* Bits of the word are cleared; or, of two variables, set where both have them, so that nothing has to be
 * inverted. True: operand @i is to be in the word */
static bool clear_bits(struct lower *l, struct op *op, unsigned i, unsigned k)
{
	const struct ast_operand *o = &op->verb->source[k];
	struct step *s = op->main;

	s->swap_mask = UINT64_MAX;
	switch ((enum ast_operand_kind)o->kind) {
	case AST_CONST:
		s->swap_mask = ~o->value;
		return true;
	case AST_ARG:
		lower_use_arg(l, o->arg,
			low_bytes(lower_field(s, CHAIN_F_SWAP_MASK, 0, 0, WORD), false, o->type.bytes), 0,
			(uint16_t)o->type.bytes, false, true);
		return true;
	case AST_PLACE:
		s->swap = load_field(l, op, i, CHAIN_F_SWAP);
		s->swap_mask = load_field(l, op, k, CHAIN_F_SWAP_MASK);
		break;
	case AST_LOCATOR: /* of a CAS only */
		break;
	}
	return false;
}

static void append_not(struct lower *l, struct op *op, struct place word)
{
	struct step *s = lower_step(l, op, CHAIN_MASKED_FETCH_ADD, "not");

	s->remote = word;
	s->add = s->boundary = UINT64_MAX;
	lower_append(l, s);
}

/* a - b is ~(~a + b), or a + -b */
static void by_difference(struct lower *l, struct op *op)
{
	const struct ast_operand *b = &op->verb->source[1];
	struct step *s = op->main;

	s->remote = lower_scratch(lower_word(l, "result", WORD), 0, WORD);
	s->add = b->kind == AST_CONST ? -b->value : load_field(l, op, 1, CHAIN_F_ADD);
	load_word(l, op, 0);
	if (b->kind != AST_CONST)
		append_not(l, op, s->remote);
	lower_append(l, s);
	if (b->kind != AST_CONST)
		append_not(l, op, s->remote);
	store(l, op, s->remote, true);
}

/* Operand @k is in the WQE: a constant or an argument, if there is one, as that takes no copy */
static void by_atomic(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	const unsigned k = v->source[0].kind < v->source[1].kind ? 0 : 1, i = 1 - k;
	struct step *s = op->main;
	bool in_word = true;

	s->remote = lower_scratch(lower_word(l, "result", WORD), 0, WORD);
	switch ((enum ast_calc)v->calc) {
	case AST_CALC_AND:
		in_word = clear_bits(l, op, i, k);
		break;
	case AST_CALC_OR:
		s->swap = UINT64_MAX;
		s->swap_mask = load_field(l, op, k, CHAIN_F_SWAP_MASK);
		break;
	default: /* a sum, without carries of XOR */
		s->add = load_field(l, op, k, CHAIN_F_ADD);
		s->boundary = UINT64_MAX;
	}
	if (in_word)
		load_word(l, op, i);
	lower_append(l, s);
	store(l, op, s->remote, true);
}

static bool takes_masks(const struct ast_verb *v)
{
	return v->calc != AST_CALC_ADD && !(v->calc == AST_CALC_SUB && v->source[1].kind == AST_CONST);
}

void lower_calc(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;

	if (v->place->kind == AST_AT_VAR && lower_web_of(op, v->place)->kind == WEB_UNUSED)
		return;
	if (op->operands)
		by_calc(l, op);
	else if (takes_masks(v) && !l->target->masked_atomics)
		lower_refuse(l, DEVICE, v->pos, "this takes masked atomics%s, and this device has none",
			op->part == PART_LOOP ? " in a loop without a bound" : " where there is no CALC");
	else if (v->calc == AST_CALC_SUB)
		by_difference(l, op);
	else
		by_atomic(l, op);
}
