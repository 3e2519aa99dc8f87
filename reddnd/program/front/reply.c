/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of the reply. First those that the program declares, which its writes must agree with. Then, for
 * the bytes that are left, those that the sources of its writes tell.
 */
#include "reddnd/program/front/sema.h"

#include <inttypes.h>
#include <string.h>

/* Bytes of the slot that a write fills from one source */
struct written {
	const struct ast_operand *from;
	uint64_t at, bytes; /* bytes 0: nothing is known here of what it and those behind it fill */
	bool up_to;
};

static bool overlap(const struct ast_reply *r, uint64_t at, uint64_t bytes)
{
	return at < r->at + (uint64_t)r->type.bytes && (!bytes || r->at < at + bytes);
}

static bool is_new_field(struct sema *s, const struct ast_reply *r)
{
	for (unsigned i = 0; i < s->prog->nreplies; i++) {
		const struct ast_reply *other = &s->prog->reply[i];
		bool same = !strcmp(other->name, r->name);

		if (!same && !overlap(other, r->at, r->type.bytes))
			continue;
		if (same)
			sema_error(s, NAME, r->pos, "the reply has a field \"%s\" already", r->name);
		else
			sema_error(s, PLACE, r->pos, "\"%s\" lies over bytes %u to %u of the reply, \"%s\"",
				r->name, other->at, other->at + other->type.bytes - 1, other->name);
		diag_note(s->d, other->pos, "it is declared here");
		return false;
	}
	return true;
}

void sema_declare_reply(struct sema *s, const struct syn_stmt *st)
{
	struct ast_reply r = {.name = st->name.word, .pos = st->name.pos};
	uint64_t at;

	if (s->prog->nreplies == PROGRAM_MAX_REPLIES) {
		sema_error(s, LIMIT, st->pos, "more than %d fields of the reply", PROGRAM_MAX_REPLIES);
		return;
	}
	if (!sema_number(s, st->value, "the offset in the slot", 0, PROGRAM_MAX_SLOT, &at) ||
		!sema_type(s, &st->type, &r.type))
		return;
	r.at = (uint32_t)at;
	if (r.type.kind == AST_OFFSET ||
		(r.type.kind == AST_UINT && r.type.order == AST_ANY && r.type.bytes > 1)) {
		sema_error(s, TYPE, st->type.pos, "in a reply a number has a byte order: be%u or le%u",
			8 * r.type.bytes, 8 * r.type.bytes);
		return;
	}
	if (!is_new_field(s, &r))
		return;
	pool_grow(s->pool, s->prog->reply, s->prog->nreplies);
	s->prog->reply[s->prog->nreplies++] = r;
}

/* Calls @take for each source of each write to the slot, as far as its place is known */
static void each_written(struct sema *s, void (*take)(struct sema *s, const struct written *w))
{
	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		const struct ast_verb *v = s->prog->verb[i];
		bool writes = v->kind == AST_WRITE || v->kind == AST_WRITE_IMM;
		struct written w = {.at = writes ? v->place->at : 0};

		if (!writes || v->place->kind != AST_AT_SLOT)
			continue;
		for (unsigned k = 0; k < v->nsources && !w.up_to; k++, w.at += w.bytes) {
			w.from = &v->source[k];
			w.bytes = w.from->type.bytes;
			if (w.from->type.kind == AST_NONE) {
				w.up_to = !v->bytes;
				w.bytes = v->bytes ? v->bytes : k + 1 == v->nsources ? v->max : 0;
			}
			take(s, &w);
		}
	}
}

static void agree(struct sema *s, const struct written *w)
{
	const struct ast_type *t = &w->from->type;

	for (unsigned i = 0; i < s->prog->nreplies; i++) {
		struct ast_reply *r = &s->prog->reply[i];

		if (!overlap(r, w->at, w->bytes))
			continue;
		r->written = true;
		r->up_to |= w->up_to && r->type.kind == AST_BYTES;
		if (t->kind != AST_UINT || r->type.kind != AST_UINT ||
			(r->at == w->at && sema_same_type(t, &r->type)))
			continue;
		sema_error(s, TYPE, w->from->pos,
			"%s at byte %" PRIu64 " of the reply, where it has \"%s\", %s, at byte %u",
			sema_type_name(t), w->at, r->name, sema_type_name(&r->type), r->at);
		diag_note(s->d, r->pos, "it is declared here");
	}
}

/* NULL: the source has no name */
static const char *name_of(const struct ast_operand *from)
{
	if (from->kind == AST_ARG)
		return from->arg->name;
	if (from->kind != AST_PLACE)
		return NULL;
	switch ((enum ast_place_kind)from->place->kind) {
	case AST_AT_VAR:
		return from->place->var->name;
	case AST_AT_REGION:
		return from->place->region->name;
	default:
		return from->place->verb->name;
	}
}

/* What several writes fill has a name if they agree on it */
static void derive(struct sema *s, const struct written *w)
{
	struct ast_reply r = {.name = name_of(w->from),
		.at = (uint32_t)w->at,
		.type = w->from->type,
		.up_to = w->up_to,
		.written = true,
		.derived = true,
		.pos = w->from->pos};

	if (r.type.kind == AST_NONE)
		r.type = (struct ast_type){.kind = AST_BYTES, .bytes = (uint32_t)w->bytes};
	for (unsigned i = 0; i < s->prog->nreplies; i++) {
		struct ast_reply *other = &s->prog->reply[i];

		if (!overlap(other, w->at, w->bytes))
			continue;
		if (other->derived && r.name && other->at == r.at && sema_same_type(&other->type, &r.type)) {
			other->mixed |= other->name && strcmp(other->name, r.name);
			other->name = other->mixed ? NULL : r.name;
		}
		return;
	}
	if (!r.type.bytes || s->prog->nreplies == PROGRAM_MAX_REPLIES)
		return;
	pool_grow(s->pool, s->prog->reply, s->prog->nreplies);
	s->prog->reply[s->prog->nreplies++] = r;
}

static bool is_taken(const struct ast_program *p, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(p->reply[i].name, name))
			return true;
	return false;
}

void sema_replies(struct sema *s)
{
	struct ast_program *p = s->prog;

	each_written(s, agree);
	for (unsigned i = 0; i < p->nreplies; i++)
		if (!p->reply[i].written)
			sema_error(s, PLACE, p->reply[i].pos, "no write goes to bytes %u to %u of the slot",
				p->reply[i].at, p->reply[i].at + p->reply[i].type.bytes - 1);
	if (diag_errors(s->d))
		return;
	each_written(s, derive);
	for (unsigned i = 0; i < p->nreplies; i++)
		if (!p->reply[i].name || is_taken(p, i, p->reply[i].name))
			p->reply[i].name = pool_printf(s->pool, "at%u", p->reply[i].at);
}
