/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of the words in which operands are compared: where a value, a link, a carry and lanes lie, and
 * the operands of the atomics */
#include "mlx5/wqe.h"
#include "reddnd/program/lower/ir.h"

#include <string.h>

/* ---- where ------------------------------------------------------------------------------------ */

bool lower_carry_in(const struct ast_cond *c)
{
	bool or_equal = c->relation == AST_REL_GE || c->relation == AST_REL_LT;

	return or_equal && !(c->right.kind == AST_CONST && c->right.value > 0);
}

unsigned lower_value_at(const struct test_word *w)
{
	if (w->direct)
		return w->at;
	return w->carry ? w->link : w->mirrored ? WORD - w->len : 0;
}

unsigned lower_link_at(const struct test_word *w)
{
	return w->carry ? 0 : w->mirrored ? WORD - 1u - w->len : w->len;
}

unsigned lower_lanes_at(const struct test *t, const struct test_word *w)
{
	unsigned n = w->nlanes ? w->nlanes : 1;

	if (w->twice)
		return 0;
	if (w->carry)
		return w->link + w->len + (w->nlanes && t->on.n == 0 ? 1u : 0u);
	return w->mirrored ? 0 : WORD - n;
}

void lower_place_value(struct lower *l, struct test *t)
{
	struct web *v = t->value;

	v->nparts = 0;
	for (unsigned i = 0; i < t->nwords; i++) {
		const struct test_word *w = &t->word[i];

		if (w->len)
			v->part[v->nparts++] = (struct part){.word = w->word,
				.step = w->direct,
				.at = (uint16_t)lower_value_at(w),
				.first = w->first,
				.len = w->len};
	}
	if (t->nwords)
		return;
	/* guards nothing: what was to be tested goes nowhere */
	v->part[0].len = (uint16_t)v->var->type.bytes;
	v->part[0].word = lower_word(l, "untested", v->part[0].len);
	v->nparts = 1;
}

/* ---- what ------------------------------------------------------------------------------------ */

/* Byte @i of a value of @type as it lies in memory; of a number narrower than that, 0 beyond it */
static uint8_t byte_of(const struct ast_type *type, bool le, uint64_t v, unsigned i)
{
	unsigned k = le ? i : type->bytes - 1 - i;

	return k < WORD ? (uint8_t)(v >> 8 * k) : 0;
}

/* The bytes of argument @a that lie in @w: to the field of a WQE, or to the word itself (@field:
 * CHAIN_FIELDS) */
static void place_arg(struct lower *l, const struct test *t, const struct test_word *w,
	const struct ast_arg *a, bool le, enum chain_field field, bool inverted)
{
	unsigned n = t->value->var->type.bytes, bytes = a->type.bytes, at = lower_value_at(w), len = w->len,
		 first;
	struct place to;

	if (le) {
		if (w->first >= bytes)
			return;
		if (len > bytes - w->first)
			len = bytes - w->first;
		first = bytes - w->first - len;
	} else {
		unsigned skip = n - bytes > w->first ? n - bytes - w->first : 0;

		if (skip >= len)
			return;
		at += skip;
		len -= skip;
		first = w->first + skip - (n - bytes);
	}
	to = field == CHAIN_FIELDS ? lower_scratch(w->word, at, len)
				   : lower_field(w->carry ? w->add : w->cas, field, 0, WORD - at - len, len);
	lower_use_arg(l, a, to, (uint16_t)first, (uint16_t)len, (field == CHAIN_FIELDS) == le, inverted);
}

static uint64_t number(const uint8_t image[WORD])
{
	uint64_t v;

	memcpy(&v, image, sizeof(v)); /* as the NIC's host reads the word */
	return v;
}

static void finish_lanes(const struct test *t, const struct test_word *w, uint8_t *compare, uint8_t *swap)
{
	unsigned at = lower_lanes_at(t, w);

	for (unsigned i = 0; i < w->nlanes; i++) {
		bool on = i < t->on.n;
		const struct step *s = on ? t->on.v[i] : t->off.v[i - t->on.n];
		uint8_t opcode = chain_verb_info(s->verb)->opcode;

		if (!on)
			w->word->init[at + i] = compare[at + i] = opcode;
		else
			swap[at + i] = opcode;
	}
	if (!w->nlanes)
		swap[at] = 1;
}

/* A match leaves these lanes, and the last byte distinguishes it from what did not match, which becomes the
 * others */
static void finish_twice(const struct test *t, const struct test_word *w, uint8_t *swap)
{
	uint8_t other[WORD] = {0};

	for (unsigned i = 0; i < w->nlanes; i++) {
		bool on = i < t->on.n;
		const struct step *s = on ? t->on.v[i] : t->off.v[i - t->on.n];

		(on ? swap : other)[i] = chain_verb_info(s->verb)->opcode;
	}
	swap[WORD - 1] = 1;
	w->other->swap = number(other);
	w->other->swap_mask = UINT64_MAX;
	w->other->compare_mask = 0xffull << 56;
}

static void finish_word(struct lower *l, struct test *t, struct test_word *w, bool le)
{
	const struct ast_cond *c = t->cond;
	const struct ast_type *type = &t->value->var->type;
	uint8_t compare[WORD] = {0}, swap[WORD] = {0}, add[WORD] = {0}, mask[WORD] = {0};
	unsigned at = lower_value_at(w);
	uint64_t x = c->right.kind == AST_PLACE ? 0 : c->right.value;

	if (lower_is_carry(c) && (c->relation == AST_REL_GE || c->relation == AST_REL_LT) &&
		!lower_carry_in(c))
		x--;
	for (unsigned i = 0; i < w->len; i++) {
		uint8_t b = byte_of(type, le, x, w->first + i);

		if (w->carry)
			add[at + i] = (uint8_t)~b;
		else
			compare[at + i] = b;
		if (t->value->from_init && t->value->var->type.kind == AST_UINT)
			w->word->init[at + i] = byte_of(type, le, t->value->var->init, w->first + i);
	}
	if (w->link && w->carry)
		add[0] = 0xff;
	if (w->carry && w->link && w == t->word)
		w->word->init[0] = 1; /* + 1 */
	if (w->link && !w->carry)
		compare[lower_link_at(w)] = 1;
	if (c->right.kind == AST_ARG && w->len)
		place_arg(l, t, w, c->right.arg, le, w->carry ? CHAIN_F_ADD : CHAIN_F_COMPARE, w->carry);
	if (c->left.kind == AST_ARG && w->len)
		place_arg(l, t, w, c->left.arg, le, CHAIN_FIELDS, false);
	if (w->to)
		w->to->from = WORD - at - w->len;
	if (w->add)
		w->add->add = number(add);
	if (!w->cas)
		return;
	if (w->twice)
		finish_twice(t, w, swap);
	else
		finish_lanes(t, w, compare, swap);
	if (w->carry) {
		unsigned carry = w->link + w->len;

		memset(mask, 0, sizeof(mask));
		mask[carry] = 0xff;
		w->cas->compare_mask = number(mask);
		memset(compare, 0, sizeof(compare));
		compare[carry] = 1;
		for (unsigned i = 0; i < w->nlanes; i++)
			mask[lower_lanes_at(t, w) + i] = 0xff;
		if (t->on.n == 0)
			mask[carry] = 0;
		w->cas->swap_mask = number(mask);
	}
	w->cas->compare = number(compare);
	w->cas->swap = number(swap);
}

static void finish_direct(struct lower *l, struct test *t, bool le)
{
	const struct ast_cond *c = t->cond;
	const struct step *s = t->word->direct;
	const struct chain_verb_info *v = chain_verb_info(s->verb);
	uint8_t compare[WORD] = {0}, swap[WORD] = {0}, mask[WORD] = {0};
	struct step *cas = t->word->cas;

	compare[WQE_OPMOD] = swap[WQE_OPMOD] = v->opmod;
	swap[WQE_OPCODE] = v->opcode;
	compare[WQE_DSCOUNT] = swap[WQE_DSCOUNT] = (uint8_t)lower_ds(s);
	for (unsigned k = 0; k < t->nwords; k++) {
		struct test_word *w = &t->word[k];

		for (unsigned i = 0; i < w->len; i++) {
			mask[w->at + i] = 0xff;
			compare[w->at + i] =
				c->right.kind == AST_PLACE
					? 0
					: byte_of(&t->value->var->type, le, c->right.value, w->first + i);
		}
		if (c->right.kind == AST_ARG)
			place_arg(l, t, w, c->right.arg, le, CHAIN_F_COMPARE, false);
		if (w->to)
			w->to->from = WORD - w->at - w->len;
	}
	cas->compare = number(compare);
	cas->swap = number(swap);
	cas->compare_mask = number(mask);
	memset(mask, 0, sizeof(mask));
	mask[WQE_OPCODE] = 0xff;
	cas->swap_mask = number(mask);
}

void lower_finish_tests(struct lower *l)
{
	for (unsigned i = 0; i < l->ntests; i++) {
		struct test *t = l->test[i];
		const struct ast_type *type = &t->value->var->type;
		bool le = type->kind == AST_UINT &&
			  (type->order == AST_LE || type->bytes == 1 || t->cond->left.kind == AST_ARG);

		if (t->nwords && t->word->direct) {
			finish_direct(l, t, le);
			continue;
		}
		for (unsigned k = 0; k < t->nwords; k++)
			finish_word(l, t, &t->word[k], le);
		if (t->nwords)
			lower_place_value(l, t);
		if (t->copy)
			t->copy->remote.from += lower_lanes_at(t, &t->word[t->nwords - 1]);
	}
}
