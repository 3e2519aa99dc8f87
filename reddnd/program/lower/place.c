/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/lower/ir.h"

#include <stdio.h>

/* ---- scratch ---------------------------------------------------------------------------------- */

struct word *lower_word(struct lower *l, const char *name, uint16_t size)
{
	struct word *w = pool_alloc(l->pool, sizeof(*w));

	w->name = pool_printf(l->pool, "%s~%u", name, l->names++);
	w->size = size;
	w->init = pool_alloc(l->pool, size);
	w->in_loop = l->part == PART_LOOP;
	*l->last_word = w;
	l->last_word = &w->next;
	l->nwords++;
	return w;
}

void lower_put(uint8_t *p, const struct ast_type *type, uint64_t v)
{
	for (unsigned i = 0; i < type->bytes && i < WORD; i++)
		p[type->order == AST_LE ? i : type->bytes - 1 - i] = (uint8_t)(v >> 8 * i);
}

struct word *lower_constant(struct lower *l, const struct ast_type *type, uint64_t value)
{
	char name[32];
	struct word *w;

	snprintf(name, sizeof(name), "%llu", (unsigned long long)value);
	w = lower_word(l, name, (uint16_t)type->bytes);
	lower_put(w->init, type, value);
	return w;
}

struct place lower_calc_bytes(const struct op *op, unsigned i, uint32_t bytes)
{
	const unsigned apart = op->verb->calc == AST_CALC_SUB ? 3 : 1;

	return lower_scratch(op->operands, i * apart * CHAIN_CALC_BYTES + WORD - bytes, bytes);
}

/* The operand that is its only use; -1: there is none */
static int operand_of(const struct web *w)
{
	const struct ast_verb *v = w->use_key && !w->written && w->use->operands ? w->use->verb : NULL;

	for (unsigned i = 0; v && i < v->nsources; i++)
		if (v->source[i].kind == AST_PLACE && w->use_key == v->source[i].place)
			return (int)i;
	return -1;
}

/* Operands are big-endian */
static void place_in_operand(struct web *w, unsigned i)
{
	const struct ast_type *type = &w->var->type;
	const struct place at = lower_calc_bytes(w->use, i, type->bytes);
	const bool reversed = type->order == AST_LE;
	const uint32_t len = reversed ? 1 : type->bytes;

	for (uint32_t k = 0; k < type->bytes; k += len)
		w->part[w->nparts++] = (struct part){.word = at.word,
			.at = (uint16_t)(at.from + (reversed ? type->bytes - 1 - k : k)),
			.first = (uint16_t)k,
			.len = (uint16_t)len};
	if (w->from_init)
		lower_put(at.word->init + at.from,
			&(struct ast_type){.kind = AST_UINT, .order = AST_BE, .bytes = type->bytes},
			w->var->init);
}

bool lower_is_result(const struct web *w)
{
	const struct ast_type *type = &w->var->type;

	return w->calculated && !w->atomic && !w->shared && (type->order == AST_BE || type->bytes == 1);
}

void lower_place_web(struct lower *l, struct web *w)
{
	const struct ast_type *type = &w->var->type;
	int operand = operand_of(w);

	if (w->kind != WEB_MEMORY || w->nparts)
		return;
	if (operand >= 0) {
		place_in_operand(w, (unsigned)operand);
		return;
	}
	w->part[0] = (struct part){.len = (uint16_t)type->bytes};
	if (lower_is_result(w)) {
		w->part[0].word = lower_word(l, w->var->name, CHAIN_CALC_BYTES);
		w->part[0].at = (uint16_t)(WORD - type->bytes);
	} else { /* an atomic changes a whole word */
		w->part[0].word = lower_word(l, w->var->name, w->atomic ? WORD : (uint16_t)type->bytes);
	}
	w->part[0].word->shared = w->shared;
	w->nparts = 1;
	if (w->from_init && type->kind != AST_BYTES)
		lower_put(w->part[0].word->init + w->part[0].at, type, w->var->init);
}

/* ---- steps and places ------------------------------------------------------------------------- */

struct step *lower_step(struct lower *l, const struct op *op, enum chain_verb verb, const char *name)
{
	struct step *s = pool_alloc(l->pool, sizeof(*s));

	s->queue = op->queue;
	s->in_loop = op->part == PART_LOOP;
	s->verb = verb;
	s->line = op->verb ? op->verb->pos.line : op->test ? op->test->cond->pos.line : 0;
	s->guard = op->guard;
	s->label = op->verb && op->verb->name && !name
			   ? pool_printf(l->pool, "%s", op->verb->name)
			   : pool_printf(
				     l->pool, "%s~%u", name ? name : chain_verb_info(verb)->name, l->names++);
	return s;
}

unsigned lower_max_sge(const struct lower *l)
{
	unsigned n = l->target->max_sge;

	return n && n < CHAIN_MAX_SGE ? n : (unsigned)CHAIN_MAX_SGE;
}

struct steps *lower_list(struct lower *l, bool in_loop)
{
	return in_loop ? &l->loop : &l->steps;
}

void lower_append(struct lower *l, struct step *s)
{
	struct steps *list = lower_list(l, s->in_loop);

	if (!l->inserting)
		TAILQ_INSERT_TAIL(list, s, link);
	else if (l->cursor)
		TAILQ_INSERT_AFTER(list, l->cursor, s, link);
	else
		TAILQ_INSERT_HEAD(list, s, link);
	l->cursor = s;
	l->nappended++;
	if (!s->in_loop)
		l->used[s->queue] = true;
}

bool lower_is_too_long(struct lower *l)
{
	if (l->nappended > 2 * CHAIN_MAX_STEPS && !diag_errors(l->diag))
		lower_refuse(l, LIMIT, l->p->pos,
			"more than %d work requests, and an instance has at most %d; do less in it",
			2 * CHAIN_MAX_STEPS, CHAIN_MAX_STEPS);
	return l->nappended > 2 * CHAIN_MAX_STEPS || lower_is_full(l);
}

struct place *lower_local(struct lower *l, struct step *s)
{
	pool_grow(l->pool, s->local, s->nlocal);
	s->local[s->nlocal] = (struct place){0};
	return &s->local[s->nlocal++];
}

struct place lower_scratch(struct word *w, uint32_t from, uint32_t len)
{
	return (struct place){.kind = CHAIN_AT_SCRATCH, .word = w, .from = from, .len = len};
}

struct place lower_field(struct step *s, enum chain_field field, unsigned sge, uint32_t from, uint32_t len)
{
	return (struct place){.kind = CHAIN_AT_FIELD,
		.step = s,
		.field = field,
		.sge = (uint8_t)sge,
		.from = from,
		.len = len};
}

unsigned lower_segments(const struct place *p)
{
	unsigned n = 0;

	if (p->joins)
		return 0;
	if (p->reversed)
		return p->len;
	if (p->kind != CHAIN_AT_SCRATCH || p->word)
		return 1;
	for (unsigned i = 0; i < p->web->nparts; i++)
		n += p->from < p->web->part[i].first + p->web->part[i].len &&
		     p->web->part[i].first < p->from + p->len;
	return n;
}

unsigned lower_ds(const struct step *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->nlocal; i++)
		n += lower_segments(&s->local[i]);
	if (chain_verb_info(s->verb)->atomic_bytes && n == 0)
		n = 1; /* an old value that nobody wants goes somewhere as well */
	return chain_wqe_ds(s->verb, n);
}

struct place lower_part(const struct part *part, uint32_t from, uint32_t len)
{
	uint32_t at = part->at + from - part->first;

	return part->step ? lower_field(part->step, CHAIN_F_CTRL, 0, at, len)
			  : lower_scratch(part->word, at, len);
}

struct step *lower_copy(
	struct lower *l, const struct op *op, struct place from, struct place to, const char *name)
{
	struct step *s = lower_step(l, op, CHAIN_READ, name);

	to.reversed ^= from.reversed;
	from.reversed = false;
	s->remote = from;
	*lower_local(l, s) = to;
	lower_append(l, s);
	return s;
}

struct step *lower_step_of(const struct lower *l, const struct ast_verb *v)
{
	return lower_op_of(l, v)->main;
}
