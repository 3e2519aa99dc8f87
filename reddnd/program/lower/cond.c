/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/wqe.h"
#include "reddnd/program/lower/ir.h"

#include <assert.h>
#include <string.h>

enum { LANES = WORD - 1 }; /* beside a link */

/* ---- where the statement is ------------------------------------------------------------------- */

static struct web *value_of(struct lower *l, struct test *t)
{
	const struct ast_cond *c = t->cond;
	struct ast_var *var;

	if (t->value)
		return t->value;
	t->value = pool_alloc(l->pool, sizeof(*t->value));
	var = pool_alloc(l->pool, sizeof(*var));
	var->name = "operand";
	var->type = c->left.type;
	if (c->left.kind == AST_ARG && c->right.type.bytes > var->type.bytes)
		var->type.bytes = c->right.type.bytes;
	*t->value = (struct web){.var = var, .kind = WEB_TESTED};
	return t->value;
}

void lower_test_begin(struct lower *l, struct op *op)
{
	struct test *t = op->test;
	const struct ast_operand *left = &t->cond->left;
	bool variable = t->value;
	struct place to = {.kind = CHAIN_AT_SCRATCH, .web = value_of(l, t), .reversed = left->swab};

	to.len = t->value->var->type.bytes;
	if (left->kind == AST_PLACE && left->place->kind == AST_AT_REGION) {
		lower_read_region(l, op, t->load, left->place);
		*lower_local(l, t->load) = to;
		t->load->must = left->place->nterms > 0;
		lower_append(l, t->load);
	} else if (left->kind == AST_PLACE && !variable) {
		struct ast_operand o = *left;

		o.swab = false;
		lower_copy(l, op, lower_source(l, op, NULL, 0, &o), to, "operand");
	}
	t->after = l->cursor && l->cursor->in_loop == (op->part == PART_LOOP) ? l->cursor : NULL;
}

/* ---- what it guards --------------------------------------------------------------------------- */

static void list_add(struct lower *l, struct step_list *list, struct step *s)
{
	pool_grow(l->pool, list->v, list->n);
	list->v[list->n++] = s;
}

static void collect(
	struct lower *l, struct test *t, bool must, struct step_list *then, struct step_list *otherwise)
{
	struct step *s;

	TAILQ_FOREACH (s, lower_list(l, t->op->part == PART_LOOP), link)
		if (s->guard && s->guard->test == t && s->must == must && (must || s->queue))
			list_add(l, s->guard->otherwise ? otherwise : then, s);
}

/* READs that bring the opcodes of a branch with more steps than lanes: each is a step of the branch itself */
static void wake(struct lower *l, struct test *t, struct step_list *list)
{
	unsigned most = lower_max_sge(l);
	struct step_list wakers = {0};

	for (unsigned i = 0; i < list->n; i += most) {
		unsigned n = list->n - i < most ? list->n - i : most;
		struct word *opcodes = lower_word(l, "opcodes", (uint16_t)n);
		struct step *s = lower_step(l, t->op, CHAIN_READ, "wake");

		s->remote = lower_scratch(opcodes, 0, n);
		for (unsigned k = 0; k < n; k++) {
			opcodes->init[k] = chain_verb_info(list->v[i + k]->verb)->opcode;
			list->v[i + k]->flags |= CHAIN_DORMANT;
			*lower_local(l, s) = lower_field(list->v[i + k], CHAIN_F_OPCODE, 0, 0, 1);
		}
		s->guard = list->v[i]->guard;
		lower_append(l, s);
		s->must = true;
		list_add(l, &wakers, s);
	}
	*list = wakers;
}

/* ---- words ------------------------------------------------------------------------------------ */

static struct test_word *add_word(struct lower *l, struct test *t, unsigned *first, unsigned most, bool link)
{
	unsigned left = t->value->var->type.bytes - *first;
	struct test_word *w;

	pool_grow(l->pool, t->word, t->nwords);
	w = &t->word[t->nwords++];
	*w = (struct test_word){.word = lower_word(l, "if", WORD),
		.first = (uint8_t)*first,
		.len = (uint8_t)(left < most ? left : most),
		.link = link};
	*first += w->len;
	return w;
}

/* Parts of at most 7 bytes. The last one leaves room for the lanes, or is replaced by them */
static void plan_equal(struct lower *l, struct test *t, unsigned lanes)
{
	unsigned bytes = t->value->var->type.bytes, first = 0;
	bool masks = l->target->masked_atomics;

	while (first + WORD - lanes - (first > 0) < bytes) {
		bool link = first > 0;

		if (masks && bytes - first <= (unsigned)LANES - link) {
			struct test_word *w = add_word(l, t, &first, WORD, link);

			w->twice = true;
			w->nlanes = (uint8_t)lanes;
			return;
		}
		add_word(l, t, &first, LANES - link, link);
		if (first == bytes)
			break; /* and the lanes in a word of their own */
	}
	add_word(l, t, &first, WORD, t->nwords > 0)->nlanes = (uint8_t)lanes;
}

static void plan_carry(struct lower *l, struct test *t, unsigned lanes, bool lit)
{
	unsigned bytes = t->value->var->type.bytes, first = 0;
	bool link = lower_carry_in(t->cond);
	struct test_word *w;

	do {
		w = add_word(l, t, &first, LANES - link, link);
		w->carry = true;
		link = true;
	} while (first < bytes);
	if (l->target->masked_atomics && w->link + w->len + (lit ? 1 : 0) + lanes <= WORD)
		w->nlanes = (uint8_t)lanes;
	else
		add_word(l, t, &first, 0, true)->nlanes = (uint8_t)lanes;
}

/* ---- steps ------------------------------------------------------------------------------------ */

static struct step *atomic(
	struct lower *l, struct test *t, enum chain_verb verb, const char *name, struct word *w)
{
	struct step *s = lower_step(l, t->op, verb, name);

	s->remote = lower_scratch(w, 0, WORD);
	return s;
}

/* The right operand's bytes in the order of a WQE: of a carry, their complement */
static void bring_variable(struct lower *l, struct test *t)
{
	const struct ast_operand *right = &t->cond->right;
	struct place from = lower_source(l, t->op, NULL, 0, right);
	bool carry = lower_is_carry(t->cond);

	if (carry) {
		struct word *copy = lower_word(l, "complement", WORD);
		struct step *s = atomic(l, t, CHAIN_MASKED_FETCH_ADD, "complement", copy);

		if (!l->target->masked_atomics) {
			lower_refuse(l, DEVICE, right->pos,
				"this device has no masked atomics, so the order of two variables cannot be "
				"tested; compare "
				"with a constant or an argument");
			return;
		}
		lower_copy(l, t->op, from, lower_scratch(copy, 0, from.len), "operand");
		s->add = s->boundary = UINT64_MAX;
		lower_append(l, s);
		from = lower_scratch(copy, 0, from.len);
	}
	for (unsigned i = 0; i < t->nwords; i++) {
		struct test_word *w = &t->word[i];
		struct step *user = carry ? w->add : w->cas;
		struct place part = from;

		if (!user || !w->len)
			continue;
		part.from += from.reversed ? from.len - w->first - w->len : w->first;
		part.len = w->len;
		struct place to = lower_field(user, carry ? CHAIN_F_ADD : CHAIN_F_COMPARE, 0, 0, w->len);

		to.reversed = true;
		w->to = lower_copy(l, t->op, part, to, "operand")->local;
	}
}

/* Its assignment brings each byte of it, and a request none, into a control segment */
static bool comes_whole(const struct web *w)
{
	const struct ast_verb *v = w->def ? w->def->verb : NULL;

	return !v || v->kind != AST_MOV || (!lower_is_narrower(v) && v->source[0].kind != AST_ARG);
}

/*
 * The form of NICs that do not check index and QPN of a WQE: the operand lies in the control segment of the
 * step that it decides about, and the CAS turns that from a NOP into what it is.
 */
static bool plan_direct(struct lower *l, struct test *t)
{
	static const struct {
		uint8_t at, len;
	} runs[] = {{WQE_QPN_DS, 3}, {WQE_INDEX, 2}, {WQE_OPMOD, 1}};
	unsigned bytes = t->value->var->type.bytes, first = 0;
	struct step *cas;

	/* A step of a loop is to be what it was, in the next iteration */
	if (!l->target->ignores_index || t->op->part == PART_LOOP || lower_is_carry(t->cond) ||
		t->on.n != 1 || t->off.n || bytes > 6 || t->cond->left.kind == AST_ARG ||
		t->value->from_init || !comes_whole(t->value) || (bytes < 5 && !l->target->masked_atomics))
		return false;
	cas = lower_step(l, t->op, bytes < 5 ? CHAIN_MASKED_CAS : CHAIN_CAS, "if");
	cas->remote = lower_field(t->on.v[0], CHAIN_F_CTRL, 0, 0, WORD);
	cas->must = t->guard;
	for (unsigned i = 0; first < bytes; i++) {
		struct test_word *w;

		pool_grow(l->pool, t->word, t->nwords);
		w = &t->word[t->nwords++];
		*w = (struct test_word){.first = (uint8_t)first,
			.len = (uint8_t)(bytes - first < runs[i].len ? bytes - first : runs[i].len),
			.direct = t->on.v[0],
			.at = runs[i].at,
			.cas = cas};
		first += w->len;
	}
	t->on.v[0]->flags |= CHAIN_DORMANT;
	if (t->cond->right.kind == AST_PLACE)
		bring_variable(l, t);
	lower_append(l, cas);
	lower_place_value(l, t);
	return true;
}

static void make_steps(struct lower *l, struct test *t)
{
	unsigned lanes = t->on.n + t->off.n;

	for (unsigned i = 0; i < t->nwords; i++) {
		struct test_word *w = &t->word[i];

		if (w->carry)
			w->add = atomic(l, t, CHAIN_FETCH_ADD, "carry", w->word);
		if (!w->carry || w->nlanes)
			w->cas = atomic(l, t, w->carry ? CHAIN_MASKED_CAS : CHAIN_CAS, "if", w->word);
	}
	if (t->cond->right.kind == AST_PLACE)
		bring_variable(l, t);
	for (unsigned i = 0; i < t->nwords; i++) {
		struct test_word *w = &t->word[i];

		if (i) {
			struct test_word *before = w - 1;

			lower_copy(l, t->op, lower_scratch(before->word, lower_lanes_at(t, before), 1),
				lower_scratch(w->word, lower_link_at(w), 1), "link");
		}
		if (w->add)
			lower_append(l, w->add);
		if (w->cas)
			lower_append(l, w->cas);
		if (w->twice) {
			w->other = atomic(l, t, CHAIN_MASKED_CAS, "else", w->word);
			lower_append(l, w->other);
		}
	}
	t->copy = lower_step(l, t->op, CHAIN_READ, "lanes");
	t->copy->must = t->guard;
	t->copy->lanes_of = t;
	t->copy->remote = lower_scratch(t->word[t->nwords - 1].word, 0, lanes);
	for (unsigned i = 0; i < lanes; i++) {
		struct step *s = i < t->on.n ? t->on.v[i] : t->off.v[i - t->on.n];

		s->flags |= CHAIN_DORMANT;
		*lower_local(l, t->copy) = lower_field(s, CHAIN_F_OPCODE, 0, 0, 1);
	}
	lower_append(l, t->copy);
}

/*
 * What would do no harm is skipped as well, where a lane is free: the rest of a loop that is over. Not if the
 * author wants some of it done ahead: all of it would then wait for this test.
 */
static void skip_more(struct lower *l, struct test *t, unsigned most)
{
	struct step_list more[2] = {0};
	struct step_list *list[2] = {&t->on, &t->off};

	collect(l, t, false, &more[0], &more[1]);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < more[side].n; i++)
			if (more[side].v[i]->ahead)
				return;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < more[side].n && t->on.n + t->off.n < most; i++) {
			struct step *s = more[side].v[i];

			s->must = true;
			list_add(l, list[s->guard->otherwise ? 1 : 0], s);
		}
}

static void lower_test(struct lower *l, struct test *t)
{
	const struct ast_cond *c = t->cond;
	bool swapped = c->relation == AST_REL_NE || c->relation == AST_REL_LT || c->relation == AST_REL_LE;
	unsigned bytes = t->value->var->type.bytes;
	struct step_list then = {0}, otherwise = {0};

	collect(l, t, true, &then, &otherwise);
	if (then.n + otherwise.n == 0) {
		lower_place_value(l, t);
		return;
	}
	l->cursor = t->after;
	if (then.n + otherwise.n > LANES) {
		wake(l, t, &then);
		wake(l, t, &otherwise);
		l->cursor = t->after;
	}
	t->on = then;
	t->off = otherwise;
	if (t->loop && !lower_is_carry(c) && bytes < WORD)
		skip_more(l, t, bytes + t->on.n + t->off.n <= WORD ? WORD - bytes : LANES);
	if (swapped) {
		struct step_list on = t->on;

		t->on = t->off;
		t->off = on;
	}
	if (t->on.n + t->off.n > LANES) {
		lower_refuse(l, LIMIT, c->pos,
			"this condition guards more than can be done; split what it guards");
		return;
	}
	if (plan_direct(l, t))
		return;
	if (lower_is_carry(c))
		plan_carry(l, t, t->on.n + t->off.n, t->on.n == 0);
	else
		plan_equal(l, t, t->on.n + t->off.n);
	assert(t->nwords <= MAX_PARTS && "PROGRAM_MAX_COMPARED bytes have room");
	lower_place_value(l, t);
	make_steps(l, t);
}

void lower_tests(struct lower *l)
{
	l->inserting = true;
	for (unsigned i = l->ntests; i-- > 0 && !lower_is_too_long(l);) {
		l->part = l->test[i]->op->part;
		lower_test(l, l->test[i]);
	}
	l->inserting = false;
}
