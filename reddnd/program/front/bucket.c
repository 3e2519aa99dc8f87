/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program does only where it has found the bucket of a store. A client may send any place, and of the
 * bytes of a store only the last one of a mark is ever the tag (image.h), but for a length that was just
 * published (docs/design/stores.md): a condition that looks for it there shows that the READ which has
 * brought it began where a bucket does. That READ may then bring, to what the
 * condition guards, the length or the locator of the bucket.
 */
#include "reddnd/program/front/sema.h"

#include <string.h>

enum { FINGERPRINT = 6 /* bytes of a mark, before the tag */ };

void sema_go_under(struct sema *s, const struct ast_cond *cond, bool holds)
{
	struct ast_under *u = pool_alloc(s->pool, sizeof(*u));

	*u = (struct ast_under){.cond = cond, .holds = holds, .up = s->under};
	s->under = u;
}

static bool is_place(const struct ast_place *to, const struct ast_place *p)
{
	if (!to || to->kind != p->kind)
		return false;
	return p->kind == AST_AT_VAR ? to->var == p->var
				     : to->verb == p->verb && to->field == p->field && to->sge == p->sge;
}

/* How often the program writes to a variable, or to a field of a WQE */
static unsigned count_writers(const struct sema *s, const struct ast_place *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		const struct ast_verb *v = s->prog->verb[i];

		for (unsigned k = 0; k < v->npieces; k++)
			n += is_place(v->piece[k].to, p);
		for (unsigned k = 0; k < v->nwas; k++)
			n += is_place(v->was[k], p);
		n += v->kind != AST_READ && is_place(v->place, p);
	}
	return n;
}

/* Byte @k in memory, of a number of that type */
static uint8_t byte_of(uint64_t number, const struct ast_type *type, uint32_t k)
{
	return (uint8_t)(number >> 8 * (type->order == AST_BE ? type->bytes - 1 - k : k));
}

/* What is compared with the mark whose tag is byte @k has the tag; and with arguments of 0, as a message of
 * no bytes has them, nothing else: that is the mark of no key, so that nobody publishes a length of 0 */
static bool is_of_key(const struct ast_operand *o, const struct ast_type *type, uint32_t k)
{
	for (uint32_t i = 1; i <= FINGERPRINT; i++)
		if (i > k || byte_of(o->value, type, k - i))
			return false;
	return true;
}

/* @c decides whether byte @k of @p is the tag; @key: of a bucket whose key the client names */
static bool asks_for_tag(
	const struct ast_cond *c, bool holds, const struct ast_place *p, uint32_t k, bool key)
{
	if (!c)
		return false;
	if (c->kind != AST_COMPARE)
		return holds == (c->kind == AST_AND) && (asks_for_tag(c->first, holds, p, k, key) ||
								asks_for_tag(c->second, holds, p, k, key));
	return c->relation == (holds ? AST_REL_EQ : AST_REL_NE) && c->left.kind == AST_PLACE &&
	       c->left.type.kind == AST_UINT && is_place(c->left.place, p) &&
	       (c->right.kind == AST_CONST || c->right.kind == AST_ARG) &&
	       byte_of(c->right.value, &c->left.type, k) == CHAIN_TAG &&
	       (!key || is_of_key(&c->right, &c->left.type, k));
}

/* Not a constant locator, whose length is known */
static bool publishes_message(const struct ast_verb *v)
{
	return v->kind == AST_CAS && v->swap.kind == AST_LOCATOR;
}

/* @v is executed only if byte @at of what @look has read is the tag. What is compared begins without it, and
 * comes from nowhere else: so it has been read */
static bool has_seen_tag(
	const struct sema *s, const struct ast_verb *v, const struct ast_verb *look, uint32_t at)
{
	uint32_t from = 0;

	for (unsigned i = 0; i < look->npieces; from += look->piece[i++].type.bytes) {
		const struct ast_place *to = look->piece[i].to;
		const uint32_t k = at - from;

		if (at < from || k >= look->piece[i].type.bytes || !to || to->kind != AST_AT_VAR ||
			to->type.kind != AST_UINT || byte_of(to->var->init, &to->type, k) == CHAIN_TAG ||
			count_writers(s, to) != 1)
			continue;
		for (const struct ast_under *u = v->under; u; u = u->up)
			if (asks_for_tag(u->cond, u->holds, to, k, publishes_message(v)))
				return true;
	}
	return false;
}

/* A place without a part that the program computes is that of a bucket, or of none */
static bool can_be_bucket(const struct ast_verb *look, uint32_t from)
{
	return look->place->kind == AST_AT_REGION &&
	       (look->place->nterms || look->patched & 1u << CHAIN_F_REMOTE_ADDR ||
		       (look->place->at + from) % CHAIN_BUCKET == 0);
}

/* What @look brings from its byte @from on, at piece @p, is the word that @v publishes in place of */
static bool brings_old(const struct sema *s, const struct ast_piece *p, const struct ast_verb *v)
{
	const struct ast_place compare = {.kind = AST_AT_FIELD, .verb = s->publish, .field = CHAIN_F_COMPARE};
	const struct ast_place *old = v->old.kind == AST_PLACE ? v->old.place : &compare;

	return is_place(p->to, old) && count_writers(s, old) == 1;
}

void sema_find_buckets(struct sema *s)
{
	/* there a condition may hold for what an iteration before has read */
	if (s->prog->endless)
		return;
	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		struct ast_verb *look = s->prog->verb[i];
		uint32_t from = 0;

		for (unsigned k = 0; k < look->npieces; from += look->piece[k++].type.bytes) {
			struct ast_piece *p = &look->piece[k];

			if (!p->to || !can_be_bucket(look, from))
				continue;
			if (p->to->kind == AST_AT_FIELD && p->to->field == CHAIN_F_LOCAL_LEN)
				p->in_bucket = has_seen_tag(s, p->to->verb, look, from + CHAIN_BUCKET_TAG);
			if (s->publish && brings_old(s, p, s->publish))
				s->publish->in_bucket =
					has_seen_tag(s, s->publish, look, from + CHAIN_BUCKET_TAG);
		}
	}
}
