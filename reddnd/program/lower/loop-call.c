/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop without a bound is a ring of its own (chain/ring/endless.h), which a request calls: the chain puts
 * what the loop needs into memory that both have, and a NOP of its call queue gives the CQE that the loop's
 * gate waits for. The loop leaves its results there, and the SEND_EN by which it is left enables the second
 * NOP of the call queue, for which the chain waits.
 *
 * An iteration begins with its head: READs that bring what is shared to WQEs that are fetched later, and put
 * back what the iteration before has left changed.
 */
#include "reddnd/program/lower/ir.h"

#include <string.h>

/* ---- what can be one -------------------------------------------------------------------------- */

static bool check_arg(struct lower *l, const struct ast_arg *a, struct diag_pos pos)
{
	return !a || lower_refuse(l, LOOP, pos,
			     "\"%s\" arrives with a request, and the loop is older than that; before the "
			     "loop, mov it to a "
			     "variable",
			     a->name);
}

/* After @op, too, the iteration puts something into the field: what is there now, the one before has left */
static bool is_stale(const struct lower *l, const struct op *op, const struct ast_place *field)
{
	const struct ast_verb *v = field->verb;

	for (unsigned i = 0; i < l->nops; i++) {
		const struct op *by = &l->op[i];

		if (by->part == PART_LOOP && by->verb && lower_patches(by->verb, field) && by > op)
			return true;
	}
	return (field->field == CHAIN_F_COMPARE && v->old.kind == AST_PLACE) ||
	       (field->field == CHAIN_F_SWAP && v->swap.kind == AST_PLACE) ||
	       (field->field == CHAIN_F_ADD && v->by.kind == AST_PLACE);
}

static bool check_place(struct lower *l, const struct op *op, const struct ast_place *p, bool written)
{
	const struct op *target;

	for (unsigned i = 0; p && op->part == PART_LOOP && p->kind == AST_AT_REGION && i < p->nterms; i++)
		if (!check_arg(l, p->term[i].arg, p->term[i].pos))
			return false;
	if (!p || p->kind != AST_AT_FIELD)
		return true;
	target = lower_op_of(l, p->verb);
	if (target->part != op->part)
		return lower_refuse(l, LOOP, p->pos,
			"\"%s\" is %s the loop, and has a WQE for each %s; use a variable to get there",
			p->verb->name, target->part == PART_LOOP ? "in" : "outside of",
			target->part == PART_LOOP ? "iteration" : "request");
	if (op->part == PART_LOOP && target <= op)
		return lower_refuse(l, LOOP, p->pos,
			"\"%s\" comes first: in the next iteration it is another WQE; use a variable to get "
			"there",
			p->verb->name);
	if (op->part == PART_LOOP && !written && is_stale(l, op, p))
		return lower_refuse(l, LOOP, p->pos,
			"here \"%s\" may have what an iteration before has put there; read it after all that "
			"this one puts there",
			p->verb->name);
	if (op->part == PART_LOOP && written && op->verb->kind == AST_CAS)
		return lower_refuse(l, LOOP, p->pos,
			"when this does not swap, \"%s\" keeps what an iteration long ago has put there; "
			"decide in a variable, and mov that",
			p->verb->name);
	if (op->part == PART_LOOP && written && !lower_dominates(op->guard, target->guard))
		return lower_refuse(l, LOOP, p->pos,
			"when this is not executed, \"%s\" would keep what an iteration long ago has put "
			"there; patch it "
			"in every case",
			p->verb->name);
	return true;
}

static bool check_operand(struct lower *l, const struct op *op, const struct ast_operand *o)
{
	if (op->part == PART_LOOP && o->kind == AST_ARG && !check_arg(l, o->arg, o->pos))
		return false;
	return o->kind != AST_PLACE || check_place(l, op, o->place, false);
}

static bool check_verb(struct lower *l, const struct op *op)
{
	const struct ast_verb *v = op->verb;
	bool fine = check_place(l, op, v->place, v->kind != AST_READ);

	for (unsigned i = 0; fine && i < v->nsources; i++)
		fine = check_operand(l, op, &v->source[i]);
	for (unsigned i = 0; fine && i < v->npieces; i++)
		fine = check_place(l, op, v->piece[i].to, true);
	if (fine && v->kind == AST_CAS)
		fine = check_operand(l, op, &v->old) && check_operand(l, op, &v->swap);
	if (fine && v->kind == AST_ADD)
		fine = check_operand(l, op, &v->by);
	if (fine && (v->fence || v->kind == AST_WAIT || v->kind == AST_ENABLE))
		return lower_refuse(
			l, LOOP, v->pos, "a program with an endless loop is ordered by the compiler alone");
	if (fine && op->queue == 0 && op->part != PART_AFTER)
		return lower_refuse(l, ANSWER, v->pos, "the answer comes after the loop; %s",
			op->part == PART_LOOP ? "keep it in variables until then" : "put this there");
	return fine;
}

bool lower_check_loop(struct lower *l)
{
	bool fine = true;

	if (!l->endless)
		return true;
	if (l->p->nqueues)
		lower_refuse(l, LOOP, l->p->queue[0]->pos,
			"a program with an endless loop has no queues of its own");
	if (l->p->nregions == PROGRAM_MAX_REGIONS)
		lower_refuse(l, LIMIT, l->p->region[l->p->nregions - 1]->pos,
			"an endless loop takes one of the %d regions; give up one", (int)PROGRAM_MAX_REGIONS);
	for (unsigned i = 0; i < l->nops; i++) {
		const struct op *op = &l->op[i];

		fine = op->verb ? check_verb(l, op)
				: check_operand(l, op, &op->test->cond->left) &&
					  check_operand(l, op, &op->test->cond->right);
	}
	return fine && !diag_errors(l->diag);
}

/* ---- the call ----------------------------------------------------------------------------------- */

static struct word *shared_word(struct lower *l, const char *name, uint16_t size)
{
	struct word *w = lower_word(l, name, size);

	w->shared = true;
	return w;
}

static struct step *step(
	struct lower *l, enum section part, uint8_t queue, enum chain_verb verb, const char *name)
{
	struct op op = {.part = (uint8_t)part, .queue = queue};
	struct step *s = lower_step(l, &op, verb, name);

	s->line = l->loop_line;
	return s;
}

static struct step *call_nop(struct lower *l, const char *name)
{
	struct step *s = step(l, PART_BEFORE, QUEUE_CALL, CHAIN_NOP, name);

	s->flags = CHAIN_CALL | CHAIN_SIGNALLED;
	return s;
}

void lower_call(struct lower *l)
{
	struct step *turn, *back, *go, *call, *over;

	l->gate = step(l, PART_LOOP, 1, CHAIN_WAIT, "gate");
	l->exit = step(l, PART_LOOP, 1, CHAIN_SEND_EN, "leave");
	l->gate->guard = l->exit->guard = l->leave;
	l->gate->must = l->exit->must = true;
	lower_append(l, l->gate);
	lower_append(l, l->exit);

	l->part = PART_BEFORE;
	l->turn = shared_word(l, "turn", WORD);
	l->back = shared_word(l, "back", 2);
	turn = step(l, PART_BEFORE, 1, CHAIN_FETCH_ADD, "turn");
	back = step(l, PART_BEFORE, 1, CHAIN_READ, "back");
	go = call_nop(l, "go");
	call = step(l, PART_BEFORE, 1, CHAIN_SEND_EN, "call");
	over = call_nop(l, "over");
	turn->remote = lower_scratch(l->turn, 0, WORD);
	turn->add = 2; /* CQEs of the call queue for each request: `go` and `over` */
	back->remote = lower_field(call, CHAIN_F_INDEX, 0, 2, 2);
	*lower_local(l, back) = lower_scratch(l->back, 0, 2);
	call->flags = CHAIN_DORMANT; /* never woken: the loop does it, with the index that this one has */
	call->through = over;
	lower_append(l, turn);
	lower_append(l, back);
	lower_append(l, go);
	lower_append(l, call);
	lower_append(l, over);
}

/* ---- the head ----------------------------------------------------------------------------------- */

struct item {
	struct word *from;
	uint32_t at, len;
	struct place to;
};

struct head {
	struct lower *l;
	struct item *item;
	unsigned n;
};

static void add(struct head *h, struct word *from, uint32_t at, uint32_t len, struct place to)
{
	pool_grow(h->l->pool, h->item, h->n);
	h->item[h->n++] = (struct item){from, at, len, to};
}

static struct word *word_of(const struct place *p, uint32_t *at)
{
	if (p->kind != CHAIN_AT_SCRATCH)
		return NULL;
	*at = p->from;
	if (p->word)
		return p->word;
	if (p->web->nparts != 1 || !p->web->part[0].word)
		return NULL;
	*at += p->web->part[0].at;
	return p->web->part[0].word;
}

static bool has(const struct head *h, const struct word *w)
{
	for (unsigned i = 0; i < h->n; i++)
		if (h->item[i].from == w)
			return true;
	return false;
}

/* A READ of what is shared into a later WQE, before anything of the iteration changes it or comes to that
 * place */
static bool can_be_first(const struct head *h, const struct step *s, struct word **from, uint32_t *at)
{
	const struct step *t;

	if (s->verb != CHAIN_READ || s->guard || s->nlocal != 1 || s->local[0].kind != CHAIN_AT_FIELD)
		return false;
	*from = word_of(&s->remote, at);
	if (!*from || !(*from)->shared || has(h, *from))
		return false;
	TAILQ_FOREACH (t, &h->l->loop, link) {
		if (t == s)
			return true;
		if (lower_conflict(t, s))
			return false;
	}
	return false;
}

static void hoist(struct head *h)
{
	struct step_list list = {0};
	struct step *s;

	TAILQ_FOREACH (s, &h->l->loop, link) {
		struct word *from;
		uint32_t at;

		if (!can_be_first(h, s, &from, &at))
			continue;
		add(h, from, at, s->remote.len ? s->remote.len : s->local[0].len, s->local[0]);
		pool_grow(h->l->pool, list.v, list.n);
		list.v[list.n++] = s;
	}
	for (unsigned i = 0; i < list.n; i++)
		TAILQ_REMOVE(&h->l->loop, list.v[i], link);
}

/* Bytes of the loop's own scratch that an iteration leaves changed, and the next one needs */
static void restore_words(struct head *h)
{
	struct lower *l = h->l;

	for (struct word *w = l->words, *end = NULL; w && w != end; w = w->next) {
		bool changed = false;
		struct step *s;

		if (!w->in_loop || w->shared)
			continue;
		TAILQ_FOREACH (s, &l->loop, link)
			changed |= chain_verb_info(s->verb)->atomic_bytes && s->remote.word == w;
		for (unsigned i = 0; i < l->nwebs && !changed; i++)
			changed = l->web[i]->kind == WEB_MEMORY && l->web[i]->from_init && l->web[i]->ndefs &&
				  l->web[i]->nparts && l->web[i]->part[0].word == w;
		if (!changed)
			continue;
		struct word *as_it_was = shared_word(l, "was", w->size);

		memcpy(as_it_was->init, w->init, w->size);
		add(h, as_it_was, 0, w->size, lower_scratch(w, 0, w->size));
	}
}

static const struct step *waker(const struct lower *l, const struct step *s)
{
	const struct step *w;

	TAILQ_FOREACH (w, &l->loop, link)
		for (unsigned i = 0; i < w->nlocal; i++)
			if (w->local[i].kind == CHAIN_AT_FIELD && w->local[i].step == s &&
				w->local[i].field == CHAIN_F_OPCODE)
				return w;
	return NULL;
}

/* What is woken by a step that may itself not run: nothing else would put it to sleep again */
static void restore_opcodes(struct head *h)
{
	struct step *s;

	TAILQ_FOREACH (s, &h->l->loop, link) {
		const struct step *by = s->flags & CHAIN_DORMANT ? waker(h->l, s) : NULL;

		if (by && by->flags & CHAIN_DORMANT)
			add(h, shared_word(h->l, "nop", 1), 0, 1, lower_field(s, CHAIN_F_OPCODE, 0, 0, 1));
	}
}

static void place_word(struct lower *l, struct word *w)
{
	if (!w->shared || w->placed)
		return;
	if (w->size >= WORD)
		l->shared_bytes = (l->shared_bytes + WORD - 1) / WORD * WORD;
	w->at = l->shared_bytes;
	w->placed = true;
	l->shared_bytes += w->size;
}

static void skip(struct lower *l, struct step *read, uint32_t bytes)
{
	*lower_local(l, read) = lower_scratch(lower_word(l, "skipped", (uint16_t)bytes), 0, bytes);
}

/* READs of consecutive bytes, to as many places as one can bring */
static void make_reads(struct head *h)
{
	struct lower *l = h->l;
	struct step *read = NULL, *before = NULL;
	unsigned n = 0;
	uint32_t end = 0;

	for (unsigned i = 0; i < h->n; i++) {
		const struct item *it = &h->item[i];
		unsigned segments = lower_segments(&it->to);
		uint32_t at = it->from->at + it->at;

		if (!read || n + segments + 1 > lower_max_sge(l)) {
			read = step(l, PART_LOOP, 1, CHAIN_READ, "head");
			read->remote = lower_scratch(it->from, it->at, 0);
			if (before)
				TAILQ_INSERT_AFTER(&l->loop, before, read, link);
			else
				TAILQ_INSERT_HEAD(&l->loop, read, link);
			before = read;
			n = 0;
		} else if (at > end) {
			skip(l, read, at - end);
			n++;
		}
		*lower_local(l, read) = it->to;
		n += segments;
		end = at + it->len;
	}
}

/* What is shared has its value before the first statement at the beginning of every request */
static void init_shared(struct lower *l)
{
	struct op op = {.part = PART_BEFORE, .queue = 1};

	l->part = PART_BEFORE;
	l->inserting = true;
	for (unsigned i = 0; i < l->nwebs; i++) {
		const struct web *w = l->web[i];
		const struct ast_type *type = &w->var->type;

		if (!w->shared || !w->from_init || !w->nparts)
			continue;
		l->cursor = NULL;
		lower_copy(l, &op, lower_scratch(lower_constant(l, type, w->var->init), 0, type->bytes),
			lower_scratch(w->part[0].word, 0, type->bytes), "init")
			->line = w->var->pos.line;
	}
	l->inserting = false;
}

void lower_head(struct lower *l)
{
	struct head h = {.l = l};
	struct place number;

	TAILQ_REMOVE(&l->loop, l->gate, link);
	TAILQ_REMOVE(&l->loop, l->exit, link);
	TAILQ_INSERT_TAIL(&l->loop, l->exit, link);
	l->part = PART_LOOP;
	number = lower_field(l->gate, CHAIN_F_INDEX, 0, 1, 3);
	number.reversed = true;
	add(&h, l->turn, 0, 3, number);
	add(&h, l->back, 0, 2, lower_field(l->exit, CHAIN_F_INDEX, 0, 2, 2));
	hoist(&h);
	TAILQ_INSERT_HEAD(&l->loop, l->gate, link); /* what wakes it is looked for as well */
	restore_words(&h);
	restore_opcodes(&h);
	TAILQ_REMOVE(&l->loop, l->gate, link);
	for (unsigned i = 0; i < h.n; i++)
		place_word(l, h.item[i].from);
	for (struct word *w = l->words; w; w = w->next)
		place_word(l, w);
	make_reads(&h);
	TAILQ_INSERT_HEAD(&l->loop, l->gate, link);
	init_shared(l);
	for (struct word *w = l->words; w; w = w->next)
		place_word(l, w);
}
