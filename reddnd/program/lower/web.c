/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/lower/ir.h"

#include <assert.h>

static struct var_access *note(struct lower *l, struct op *op, const void *key, const struct ast_var *var)
{
	struct var_access *a;

	pool_grow(l->pool, op->access, op->naccesses);
	a = &op->access[op->naccesses++];
	*a = (struct var_access){.key = key, .var = var};
	return a;
}

bool lower_reversed_store(const struct ast_verb *v)
{
	const struct ast_operand *o = v->source;

	return v->kind == AST_MOV && v->place->kind == AST_AT_REGION && o->swab &&
	       o->place->kind == AST_AT_REGION && o->place->nterms;
}

bool lower_is_narrower(const struct ast_verb *v)
{
	return v->kind == AST_MOV && v->source[0].type.kind == AST_UINT && v->place->kind != AST_AT_FIELD &&
	       v->source[0].type.bytes < v->place->type.bytes;
}

/* Reading a few bytes more costs less than an addition */
enum { MOST_SKIPPED = 256 };

uint32_t lower_skip(const struct ast_place *p)
{
	return p->kind == AST_AT_REGION && p->nterms == 1 && p->at <= MOST_SKIPPED ? (uint32_t)p->at : 0;
}

/* @read: of a READ, which can begin a bit before */
static void note_terms(struct lower *l, struct op *op, const struct ast_place *p, bool read)
{
	for (unsigned i = 0; p->kind == AST_AT_REGION && i < p->nterms; i++)
		if (p->term[i].var) {
			struct var_access *a = note(l, op, &p->term[i], p->term[i].var);

			a->use = true;
			/* the WQE's address can take it as it is */
			a->term =
				p->nterms == 1 && !(op->verb && lower_reversed_store(op->verb)) &&
				!(op->verb && (op->verb->kind == AST_CALC || lower_is_narrower(op->verb))) &&
				(p->at == 0 || (read && lower_skip(p))) &&
				p->term[i].var->type.bytes <= PROGRAM_MAX_OFFSET &&
				(p->term[i].var->type.order == AST_BE || p->term[i].var->type.bytes == 1);
		}
}

static void note_operand(struct lower *l, struct op *op, const struct ast_operand *o, bool read)
{
	if (o->kind != AST_PLACE)
		return;
	if (o->place->kind == AST_AT_VAR)
		note(l, op, o->place, o->place->var)->use = true;
	note_terms(l, op, o->place, read);
}

static void note_verb(struct lower *l, struct op *op, const struct ast_verb *v)
{
	bool atomic = v->kind == AST_CAS || v->kind == AST_ADD;

	for (unsigned i = 0; i < v->nsources; i++)
		note_operand(l, op, &v->source[i], v->kind == AST_MOV && v->place->kind != AST_AT_REGION);
	if (v->kind == AST_CAS) {
		note_operand(l, op, &v->old, false);
		note_operand(l, op, &v->swap, false);
	}
	if (v->kind == AST_ADD)
		note_operand(l, op, &v->by, false);
	if (v->place)
		note_terms(l, op, v->place, v->kind == AST_READ);
	if (v->place && v->place->kind == AST_AT_VAR) {
		struct var_access *a = note(l, op, v->place, v->place->var);

		a->use = v->kind == AST_READ || atomic;
		a->def = v->kind != AST_READ;
	}
	for (unsigned i = 0; i < v->nwas; i++)
		note(l, op, v->was[i], v->was[i]->var)->def = true;
	for (unsigned i = 0; i < v->npieces; i++)
		if (v->piece[i].to && v->piece[i].to->kind == AST_AT_VAR)
			note(l, op, v->piece[i].to, v->piece[i].to->var)->def = true;
}

static void note_test(struct lower *l, struct op *op)
{
	const struct ast_cond *c = op->test->cond;
	unsigned before = op->naccesses;

	note_operand(l, op, &c->left, true);
	if (op->naccesses > before && c->left.place->kind == AST_AT_VAR && !c->left.swab)
		op->access[before].tested = true;
	note_operand(l, op, &c->right, false);
}

static struct web *find(struct web *w)
{
	while (w->same) {
		if (w->same->same)
			w->same = w->same->same;
		w = w->same;
	}
	return w;
}

static struct web *join(struct web *a, struct web *b)
{
	a = find(a);
	b = find(b);
	if (a != b) {
		b->same = a;
		a->from_init |= b->from_init;
		a->shared |= b->shared;
		a->parts |= b->parts;
	}
	return a;
}

/* The statements of an endless loop: all from @begin to @end, without it */
struct range {
	unsigned begin, end;
};

/* Joins @use with the assignments by ops from @to on, below @from. True: one of them always comes before it
 */
static bool reach_back(struct lower *l, unsigned from, unsigned to, struct var_access *use)
{
	const struct guard *guard = l->op[use->op].guard;

	for (struct var_access *a = use->before; a && a->op >= to; a = a->before) {
		if (a->op >= from || lower_excludes(l->op[a->op].guard, guard))
			continue;
		join(use->web, a->web);
		if (lower_dominates(l->op[a->op].guard, guard))
			return true;
	}
	return false;
}

/* The same with all assignments of an endless loop: what they did in an iteration before, or in the last one.
 * @last: of them all */
static void reach_loop(const struct range *loop, struct var_access *last, struct var_access *use)
{
	for (struct var_access *a = last; a && a->op >= loop->begin; a = a->before)
		if (a->op < loop->end)
			join(use->web, a->web);
}

/* The assignments that may be what @use sees; the value before the first statement if nothing comes before.
 * @last: of the variable, in all of the program */
static void reach(struct lower *l, const struct range *loop, struct var_access *last, struct var_access *use)
{
	const uint8_t part = l->op[use->op].part;
	const unsigned first = part == PART_BEFORE ? 0 : part == PART_LOOP ? loop->begin : loop->end;

	if (reach_back(l, use->op, first, use))
		return;
	if (part != PART_BEFORE && !use->var->each_iteration) {
		reach_loop(loop, last, use);
		if (part == PART_LOOP)
			find(use->web)->shared = true;
		if (reach_back(l, loop->begin, 0, use))
			return;
	}
	find(use->web)->from_init = true;
}

/* What it makes nobody uses: it has no step */
static bool is_dropped(const struct op *op)
{
	const struct ast_verb *v = op->verb;

	return v && (v->kind == AST_MOV || v->kind == AST_CALC) && v->place->kind == AST_AT_VAR &&
	       lower_web_of(op, v->place)->nuses == 0;
}

static void classify(struct web *w)
{
	const struct var_access *use = NULL, *def = NULL;

	if (w->nuses == 0) {
		w->kind = WEB_UNUSED;
		return;
	}
	w->kind = WEB_MEMORY;
	if (w->parts & 1u << PART_LOOP && w->parts != 1u << PART_LOOP)
		w->shared = true;
	if (w->nuses > 1 || w->atomic || w->shared)
		return;
	for (unsigned k = 0; k < w->use->naccesses; k++)
		if (w->use->access[k].use && w->use->access[k].web == w)
			use = &w->use->access[k];
	for (unsigned k = 0; w->def && k < w->def->naccesses; k++)
		if (w->def->access[k].def && w->def->access[k].web == w)
			def = &w->def->access[k];
	assert(use);
	w->use_key = use->key;
	if (use->tested && !w->written)
		w->kind = WEB_TESTED;
	/* the WQE's own address is the value before the first statement, or the one assignment */
	if (use->term && !is_dropped(w->use) &&
		((w->ndefs == 1 && !w->from_init && def && w->def->verb &&
			 (w->def->verb->kind == AST_READ || w->def->verb->kind == AST_MOV ||
				 w->def->verb->kind == AST_CALC)) ||
			(w->ndefs == 0 && w->var->init <= PROGRAM_MAX_CONSTANT)))
		w->kind = WEB_ADDRESS;
}

struct web *lower_web_of(const struct op *op, const void *key)
{
	for (unsigned k = 0; k < op->naccesses; k++)
		if (op->access[k].key == key)
			return op->access[k].web;
	return NULL;
}

/* Each statement's accesses; in @last, by variable, the last assignment */
static void note_all(struct lower *l, struct var_access **last)
{
	for (unsigned i = 0; i < l->nops && !lower_is_full(l); i++) {
		struct op *op = &l->op[i];

		if (op->verb)
			note_verb(l, op, op->verb);
		else
			note_test(l, op);
		for (unsigned k = 0; k < op->naccesses; k++) {
			struct var_access *a = &op->access[k];

			a->web = pool_alloc(l->pool, sizeof(struct web));
			a->web->var = a->var;
			a->web->parts = (uint8_t)(1u << op->part);
			a->op = i;
			a->before = last[a->var->index];
			if (a->def)
				last[a->var->index] = a;
		}
	}
}

static struct range endless_loop(const struct lower *l)
{
	struct range r = {0};

	while (r.begin < l->nops && l->op[r.begin].part < PART_LOOP)
		r.begin++;
	for (r.end = r.begin; r.end < l->nops && l->op[r.end].part == PART_LOOP;)
		r.end++;
	return r;
}

void lower_webs(struct lower *l)
{
	struct var_access **last = pool_alloc(l->pool, (l->nvars + 1) * sizeof(struct var_access *));
	const struct range loop = endless_loop(l);

	note_all(l, last);
	if (diag_errors(l->diag))
		return;
	for (unsigned i = 0; i < l->nops; i++)
		for (unsigned k = 0; k < l->op[i].naccesses; k++) {
			struct var_access *a = &l->op[i].access[k];

			if (a->use)
				reach(l, &loop, last[a->var->index], a);
		}
	for (unsigned i = 0; i < l->nops; i++)
		for (unsigned k = 0; k < l->op[i].naccesses; k++) {
			struct var_access *a = &l->op[i].access[k];
			struct web *w = a->web = find(a->web);

			if (w->nuses + w->ndefs == 0) {
				pool_grow(l->pool, l->web, l->nwebs);
				l->web[l->nwebs++] = w;
			}
			w->nuses += a->use;
			w->ndefs += a->def;
			w->atomic |= a->use && a->def;
			w->written |= a->def && l->op[i].verb && l->op[i].verb->kind == AST_WRITE;
			w->calculated |= a->def && l->op[i].verb && l->op[i].verb->kind == AST_CALC;
			if (a->use)
				w->use = &l->op[i];
			if (a->def)
				w->def = &l->op[i];
		}
	for (unsigned i = 0; i < l->nwebs; i++) {
		classify(l->web[i]);
		if (l->web[i]->kind == WEB_TESTED)
			l->web[i]->use->test->value = l->web[i];
	}
}
