/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A data segment of length 0 has 2^31 bytes for a NIC, so the WR that sends a region is not executed when its
 * length turns out to be 0; another one sends the rest. The same holds for a length above the declared
 * maximum:
 *
 *   mov swab(w.length) -> n
 *   add n by -1
 *   if n >= max { the other sources } else { w: ... }
 */
#include "reddnd/program/front/sema.h"

#include <string.h>

static const struct ast_type LENGTH = {.kind = AST_UINT, .order = AST_BE, .bytes = 4};
static const struct ast_type NUMBER = {.kind = AST_UINT, .order = AST_LE, .bytes = 4};

static struct ast_place *new_place(struct sema *s, struct ast_place place)
{
	struct ast_place *p = pool_alloc(s->pool, sizeof(*p));

	*p = place;
	return p;
}

static void add_verb(struct sema *s, struct ast_block *out, struct ast_verb verb)
{
	struct ast_verb *v = pool_alloc(s->pool, sizeof(*v));

	*v = verb;
	sema_add_stmt(s, out, AST_VERB, v->pos)->verb = v;
}

/* The source whose length is patched; v->nsources if there is none */
static unsigned patched_source(const struct ast_verb *v)
{
	unsigned i = 0;

	while (i < v->nsources && (v->bytes || v->source[i].type.kind != AST_NONE))
		i++;
	return i;
}

/* @v without source @i; NULL if that leaves nothing to be done */
static struct ast_verb *rest_of(struct sema *s, const struct ast_verb *v, unsigned i)
{
	struct ast_verb *rest;

	if (v->kind == AST_WRITE && v->nsources == 1)
		return NULL;
	rest = pool_alloc(s->pool, sizeof(*rest));
	*rest = *v;
	rest->name = NULL;
	rest->max = 0;
	rest->patched = rest->lengths = 0;
	rest->source = pool_alloc(s->pool, v->nsources * sizeof(*rest->source));
	memcpy(rest->source, v->source, i * sizeof(*rest->source));
	memcpy(rest->source + i, v->source + i + 1, (v->nsources - i - 1) * sizeof(*rest->source));
	rest->nsources--;
	return rest;
}

void sema_add_verb(struct sema *s, struct ast_block *out, struct ast_verb *v, struct diag_pos pos)
{
	bool sends = v->kind == AST_WRITE || v->kind == AST_WRITE_IMM || v->kind == AST_SEND;
	unsigned i = sends ? patched_source(v) : v->nsources;
	struct ast_cond *cond;
	struct ast_operand *length;
	struct ast_var *var;
	struct ast_place *n;
	struct ast_stmt *decided;

	if (!sends || i == v->nsources || v->least) {
		sema_add_stmt(s, out, AST_VERB, pos)->verb = v;
		return;
	}
	var = sema_new_var(s, "length", &NUMBER, v->pos);
	if (!var)
		return;
	v->rest = rest_of(s, v, i);
	n = new_place(s, (struct ast_place){.kind = AST_AT_VAR, .type = NUMBER, .var = var, .pos = v->pos});
	length = pool_alloc(s->pool, sizeof(*length));
	*length = (struct ast_operand){.kind = AST_PLACE,
		.swab = true,
		.type = NUMBER,
		.place = new_place(s, (struct ast_place){.kind = AST_AT_FIELD,
					      .type = LENGTH,
					      .verb = v,
					      .field = CHAIN_F_LOCAL_LEN,
					      .sge = (uint8_t)i,
					      .pos = v->pos}),
		.pos = v->pos};
	add_verb(s, out,
		(struct ast_verb){.kind = AST_MOV,
			.source = length,
			.nsources = 1,
			.place = n,
			.queue = s->queue,
			.pos = v->pos});
	add_verb(s, out,
		(struct ast_verb){.kind = AST_ADD,
			.by = {.kind = AST_CONST, .type = NUMBER, .value = UINT32_MAX, .pos = v->pos},
			.place = n,
			.queue = s->queue,
			.pos = v->pos});
	cond = pool_alloc(s->pool, sizeof(*cond));
	*cond = (struct ast_cond){.relation = AST_REL_GE,
		.left = {.kind = AST_PLACE, .type = NUMBER, .place = n, .pos = v->pos},
		.right = {.kind = AST_CONST,
			.type = NUMBER,
			.value = v->max ? v->max : PROGRAM_MAX_SLOT,
			.pos = v->pos},
		.queue = s->queue,
		.pos = v->pos};
	decided = sema_add_stmt(s, out, AST_IF, pos);
	decided->cond = cond;
	if (v->rest)
		sema_add_stmt(s, &decided->then, AST_VERB, pos)->verb = v->rest;
	sema_add_stmt(s, &decided->otherwise, AST_VERB, pos)->verb = v;
}

/* The patches of the data segment that the rest leaves out are for one WQE only */
bool sema_reaches_rest(const struct ast_place *p)
{
	bool segment = p->field == CHAIN_F_LOCAL_ADDR || p->field == CHAIN_F_LOCAL_LEN;

	return !p->verb->rest || (segment && p->sge == patched_source(p->verb));
}
