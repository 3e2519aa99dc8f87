/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/lower/ir.h"

#include <string.h>

/* True if the verb of a field, and all that copy it, are executed only under @guard */
static bool is_seen_under(const struct lower *l, const struct guard *guard, const struct ast_place *field)
{
	for (unsigned i = 0; i < l->nops; i++) {
		const struct ast_verb *v = l->op[i].verb;

		if (v && (v == field->verb || lower_reads(v, field)) &&
			!lower_dominates(guard, l->op[i].guard))
			return false;
	}
	return true;
}

/*
 * An `ahead` read is done even if the conditions around it do not hold: then nothing may see it. So what it
 * brings goes where only what is under these conditions looks.
 */
static bool is_apart(struct lower *l, const struct op *op, const struct ast_place *to)
{
	const struct web *w;

	if (to->kind == AST_AT_FIELD)
		return is_seen_under(l, op->guard, to);
	w = lower_web_of(op, to);
	return w->kind == WEB_UNUSED || (w->ndefs == 1 && !w->from_init && !w->shared);
}

static void check_ahead(struct lower *l, const struct op *op)
{
	for (unsigned i = 0; i < op->verb->npieces; i++) {
		const struct ast_place *to = op->verb->piece[i].to;

		if (!to || is_apart(l, op, to))
			continue;
		lower_refuse(l, AHEAD, to->pos,
			"a read that is done ahead may bring this although the conditions around it do not "
			"hold, and it is "
			"used where they may not; give it a place that is used only where they do");
		return;
	}
}

static void finish(struct lower *l, struct step *s)
{
	s->must = !s->ahead;
	lower_append(l, s);
}

/* A little-endian number in an operand of an atomic, which is big-endian */
static bool is_turned(const struct ast_type *from, const struct ast_place *to)
{
	return to->kind == AST_AT_FIELD && from->kind == AST_UINT && from->order == AST_LE && from->bytes > 1;
}

static void lower_read(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct step *s = op->main;
	unsigned used = 0;

	if (v->place->kind == AST_AT_REGION) {
		lower_read_region(l, op, s, v->place);
	} else {
		struct ast_operand o = {.kind = AST_PLACE, .type = v->place->type, .place = v->place};

		s->remote = lower_source(l, op, s, 0, &o);
	}
	for (unsigned i = 0; i < v->npieces; i++) {
		struct place to = {.len = v->piece[i].type.bytes};

		if (v->piece[i].to)
			to = lower_target(l, op, v->piece[i].to, v->piece[i].type.bytes);
		to.reversed = v->piece[i].to && is_turned(&v->piece[i].type, v->piece[i].to);
		to.in_bucket = v->piece[i].in_bucket;
		*lower_local(l, s) = to;
		if (to.kind != CHAIN_AT_NONE)
			used = s->nlocal;
	}
	s->nlocal = used ? used : 1u + s->skips; /* what nobody uses at the end need not be read */
	for (unsigned i = 0; i < s->nlocal; i++)
		if (s->local[i].kind == CHAIN_AT_NONE)
			s->local[i] = lower_scratch(
				lower_word(l, "skipped", (uint16_t)s->local[i].len), 0, s->local[i].len);
	s->ahead = v->ahead && op->guard;
	if (s->ahead)
		check_ahead(l, op);
	finish(l, s);
}

/* A WRITE has one place, and somebody may have a label of it: it is done even if nobody looks at the variable
 */
static struct place written(struct lower *l, const struct op *op, const struct ast_place *p)
{
	struct web *w = p->kind == AST_AT_VAR ? lower_web_of(op, p) : NULL;

	if (w && w->kind == WEB_UNUSED)
		w->kind = WEB_MEMORY;
	return lower_target(l, op, p, p->type.bytes);
}

/* An operand comes to its WQE whether or not that is executed, unless others would see it there */
static void bring_operand(
	struct lower *l, const struct op *op, struct place from, struct place to, const char *name)
{
	const struct ast_place field = {
		.kind = AST_AT_FIELD, .verb = (struct ast_verb *)op->verb, .field = to.field};

	lower_copy(l, op, from, to, name)->must = !is_seen_under(l, op->guard, &field);
}

/* A request cannot choose an immediate itself: it arrives in scratch */
static void immediate(struct lower *l, const struct op *op, struct step *s, const struct ast_operand *arg)
{
	struct op code = *op;
	uint32_t bytes = arg->type.bytes;

	code.queue = (uint8_t)(1 + l->p->nqueues); /* that of the answer only reaches the client */
	bring_operand(l, &code, lower_source(l, &code, s, 0, arg),
		lower_field(s, CHAIN_F_IMM, 0, 4 - bytes, bytes), "immediate");
}

/* The word that @p is all of, if it may lie anywhere; else NULL */
static struct word *whole_word(const struct place *p)
{
	const struct part *part = NULL;
	struct word *w = p->word;

	if (p->kind != CHAIN_AT_SCRATCH || p->reversed)
		return NULL;
	if (!w && p->web->kind == WEB_MEMORY && p->web->nparts == 1 && !p->web->atomic)
		part = &p->web->part[0];
	if (part && part->at == 0)
		w = part->word;
	return w && !w->in && !w->shared && p->from == 0 && p->len == w->size ? w : NULL;
}

/* Words from the @i-th source on that can follow each other: how many, and their bytes. An atomic may leave
 * its eight bytes in one, aligned */
static unsigned count_whole(const struct step *s, unsigned i, uint32_t *bytes)
{
	const struct word *first = whole_word(&s->local[i]), *w = first;
	unsigned n = 0;

	*bytes = 0;
	while (w && w->in_loop == first->in_loop && !(w->size == WORD && *bytes % WORD)) {
		for (unsigned k = i; k < i + n; k++)
			if (whole_word(&s->local[k]) == w)
				return n;
		*bytes += w->size;
		n++;
		w = i + n < s->nlocal ? whole_word(&s->local[i + n]) : NULL;
	}
	return n;
}

/* What is written together lies together, so that it is one data segment */
static void join_sources(struct lower *l, struct step *s)
{
	uint32_t bytes;

	for (unsigned i = 0, n; i < s->nlocal; i += n ? n : 1) {
		struct word *all;

		n = count_whole(s, i, &bytes);
		if (n < 2)
			continue;
		all = lower_word(l, "sources", (uint16_t)bytes);
		all->in_loop = whole_word(&s->local[i])->in_loop;
		for (unsigned k = 0, at = 0; k < n; k++) {
			struct word *w = whole_word(&s->local[i + k]);

			s->local[i + k].joins = k > 0;
			w->in = all;
			w->at = at;
			at += w->size;
		}
	}
}

/* The variable that the write @op is the first assignment of; NULL: it has others before, or is none, or the
 * text names the step. */
static struct web *first_written(const struct lower *l, const struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct web *w =
		v->kind == AST_WRITE && v->place->kind == AST_AT_VAR ? lower_web_of(op, v->place) : NULL;

	if (!w || w->kind != WEB_MEMORY || w->from_init || w->shared || v->name || l->by_hand)
		return NULL;
	for (unsigned i = 0; i < op->naccesses; i++)
		if (op->access[i].key == v->place && op->access[i].before)
			return NULL;
	return w;
}

/* Arguments and constants that a variable has from the beginning need no WR, as in arrives_there() */
static bool begins_with(struct lower *l, const struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct web *w = first_written(l, op);
	uint32_t at = 0;

	for (unsigned i = 0; i < v->nsources && w; i++)
		if (v->source[i].swab || (v->source[i].kind != AST_CONST && v->source[i].kind != AST_ARG))
			w = NULL;
	if (!w)
		return false;
	lower_place_web(l, w);
	for (unsigned i = 0; i < v->nsources; i++) {
		const struct ast_operand *o = &v->source[i];
		const struct place to = lower_part(&w->part[0], at, o->type.bytes);

		if (o->kind == AST_CONST)
			lower_put(to.word->init + to.from, &o->type, o->value);
		else
			lower_use_arg(l, o->arg, to, 0, (uint16_t)to.len,
				o->type.kind == AST_UINT && o->type.order == AST_LE, false);
		at += o->type.bytes;
	}
	return true;
}

static void lower_write(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct step *s = op->main;

	if (begins_with(l, op))
		return;
	for (unsigned i = 0; i < v->nsources; i++) {
		struct place p = lower_source(l, op, s, i, &v->source[i]);

		if (p.len == 0) { /* of no type: as long as said, or as it turns out */
			p.least = v->bytes ? 0 : (uint32_t)v->least;
			p.len = v->bytes ? (uint32_t)v->bytes : p.least ? p.least : 1;
			p.max = v->bytes ? 0 : (uint32_t)v->max;
		}
		*lower_local(l, s) = p;
	}
	if (!(v->patched & (1u << CHAIN_F_LOCAL_ADDR | 1u << CHAIN_F_LOCAL_LEN)))
		join_sources(l, s);
	if (v->kind != AST_SEND) {
		if (v->place->kind == AST_AT_SLOT)
			s->remote = (struct place){.kind = CHAIN_AT_SLOT, .from = (uint32_t)v->place->at};
		else if (v->place->kind == AST_AT_REGION)
			s->remote = lower_region(l, op, s, -1, v->place, v->place->at);
		else
			s->remote = written(l, op, v->place);
	}
	if (v->ahead) {
		if (l->endless || l->p->nqueues)
			lower_refuse(l, ANSWER, v->pos,
				"an answer ahead of what comes after it, in a program with %s; all of them "
				"come at the end",
				l->endless ? "a loop without a bound" : "queues");
		s->flags |= CHAIN_AHEAD;
		l->early |= !l->by_hand;
	}
	if (v->kind == AST_WRITE_IMM) {
		if (!v->has_imm)
			s->flags |= CHAIN_IMM_SEQ;
		else if (v->imm.kind == AST_CONST)
			s->imm = (uint32_t)v->imm.value;
		else
			immediate(l, op, s, &v->imm);
	}
	finish(l, s);
}

/* ---- mov -------------------------------------------------------------------------------------- */

static struct step *step_of_mov(struct lower *l, struct op *op)
{
	return lower_step(l, op, op->verb->place->kind == AST_AT_REGION ? CHAIN_WRITE : CHAIN_READ,
		op->verb->name ? NULL : "mov");
}

/* Of a place that a narrower number goes to */
static struct place low_bytes(struct place to, const struct ast_type *type, uint32_t bytes)
{
	if (to.len > bytes) {
		to.from += type->order == AST_LE ? 0 : to.len - bytes;
		to.len = bytes;
	}
	return to;
}

/* All that is assigned to the variable: its bytes are 0 until then */
static bool is_only(const struct web *w)
{
	return !w->from_init && w->ndefs == 1 && !w->atomic && !w->shared;
}

/* An argument that a variable or a field is from the beginning needs no WR: the request brings it there */
static bool arrives_there(struct lower *l, struct op *op, const struct ast_operand *o)
{
	const struct ast_place *p = op->verb->place;
	const struct ast_type *type = &p->type;
	struct web *w = p->kind == AST_AT_VAR ? lower_web_of(op, p) : NULL;
	bool reversed = type->kind == AST_UINT && type->order == AST_LE && type->bytes > 1;
	struct place to;

	if (!w || !is_only(w))
		return false;
	if (w->kind == WEB_UNUSED)
		return true;
	to = low_bytes(lower_target(l, op, p, o->arg->type.bytes), type, o->arg->type.bytes);
	lower_use_arg(l, o->arg, to, 0, (uint16_t)o->arg->type.bytes, reversed, false);
	return true;
}

/* The source's bytes: an argument of no order of its own lies in scratch as a big-endian number */
static struct place mov_source(struct lower *l, struct op *op)
{
	const struct ast_operand *o = &op->verb->source[0];
	struct place from = lower_source(l, op, op->main, 0, o);

	if (o->kind == AST_ARG && o->arg->type.kind == AST_UINT && o->arg->type.order == AST_ANY)
		from.reversed ^= op->verb->place->type.order == AST_LE;
	return from;
}

/* By way of scratch: @o as a number of @bytes, its bytes reversed if @swab. A segment for each byte has an
 * address of its own, so where the address is computed, a value is reversed there */
static struct place by_word(
	struct lower *l, struct op *op, const struct ast_operand *o, uint32_t bytes, bool swab)
{
	const struct ast_type *type = &op->verb->place->type;
	struct word *word = lower_word(l, "mov", (uint16_t)bytes);
	struct place to = low_bytes(lower_scratch(word, 0, bytes), type, o->type.bytes);
	struct step *load;

	if (o->kind == AST_ARG) {
		lower_use_arg(l, o->arg, to, 0, (uint16_t)to.len, type->order == AST_LE && to.len > 1, false);
	} else if (o->place->kind == AST_AT_REGION) {
		load = lower_step(l, op, CHAIN_READ, "mov");
		lower_read_region(l, op, load, o->place);
		to.reversed = swab;
		*lower_local(l, load) = to;
		finish(l, load);
	} else {
		lower_copy(l, op, lower_source(l, op, op->main, 0, o), to, "mov");
	}
	return lower_scratch(word, 0, bytes);
}

static void lower_mov(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	const struct ast_operand *o = &v->source[0];
	struct step *s = op->main;
	struct place from, to;
	const bool store = v->place->kind == AST_AT_REGION, narrower = lower_is_narrower(v);

	if (o->kind == AST_ARG && v->place->kind == AST_AT_VAR && arrives_there(l, op, o))
		return;
	if (store) {
		if (narrower || lower_reversed_store(v))
			from = by_word(l, op, o, v->place->type.bytes, o->swab);
		else
			from = mov_source(l, op);
		*lower_local(l, s) = from;
		s->remote = lower_region(l, op, s, -1, v->place, v->place->at);
		finish(l, s);
		return;
	}
	if (v->place->kind == AST_AT_VAR && lower_web_of(op, v->place)->kind == WEB_UNUSED)
		return;
	if (narrower && !is_only(lower_web_of(op, v->place))) {
		from = by_word(l, op, o, v->place->type.bytes, o->swab);
	} else if (o->kind == AST_PLACE && o->place->kind == AST_AT_REGION) {
		lower_read_region(l, op, s, o->place);
		from = s->remote;
		from.len = o->place->type.bytes;
	} else {
		from = mov_source(l, op);
	}
	to = low_bytes(lower_target(l, op, v->place, from.len), &v->place->type, from.len);
	to.reversed =
		from.reversed ^ (o->swab && from.kind == CHAIN_AT_REGION) ^ is_turned(&o->type, v->place);
	from.reversed = false;
	s->remote = from;
	*lower_local(l, s) = to;
	finish(l, s);
}

/* ---- atomics ---------------------------------------------------------------------------------- */

/* The bits of the word that a CAS compares. What an ADD carries out of a variable that is narrower stays in
 * the rest of the word, and is no part of the variable */
static uint64_t compared(const struct lower *l, const struct ast_verb *v)
{
	const struct ast_place *p = v->place;

	if (p->kind != AST_AT_VAR || p->type.bytes == WORD || v->mask != UINT64_MAX)
		return v->mask;
	for (unsigned i = 0; i < l->nops; i++) {
		const struct ast_verb *add = l->op[i].verb;

		if (add && add->kind == AST_ADD && add->place->kind == AST_AT_VAR &&
			add->place->var == p->var)
			return UINT64_MAX >> (64 - 8 * p->type.bytes);
	}
	return UINT64_MAX;
}

/* The first bytes of a locator in memory are the last ones of an operand, and the low ones of the count */
static void bring_length(struct lower *l, const struct op *op, struct step *s)
{
	enum { BYTES = 3, OF_COUNT = 4 };
	const struct place count = {.kind = CHAIN_AT_LENGTH, .from = OF_COUNT - BYTES, .len = BYTES};
	struct place to = lower_field(s, CHAIN_F_SWAP, 0, WORD - BYTES, BYTES);

	to.reversed = true;
	lower_copy(l, op, count, to, "length");
}

/* An operand of an atomic: a number of the host, big-endian in the WQE. @raw: of a field, whose bytes the NIC
 * swaps */
static uint64_t operand(struct lower *l, const struct op *op, struct step *s, const struct ast_operand *o,
	enum chain_field field, bool raw)
{
	uint32_t bytes;
	struct web *w;

	switch ((enum ast_operand_kind)o->kind) {
	case AST_CONST:
		return raw ? __builtin_bswap64(o->value) : o->value;
	case AST_ARG:
		bytes = o->arg->type.bytes;
		lower_use_arg(l, o->arg, lower_field(s, field, 0, raw ? 0 : 8 - bytes, bytes), 0,
			(uint16_t)bytes, raw, false);
		return 0;
	case AST_PLACE:
		w = lower_web_of(op, o->place);
		lower_place_web(l, w);
		bytes = w->var->type.bytes;
		struct place from = {.kind = CHAIN_AT_SCRATCH, .web = w, .len = bytes};
		struct place to = lower_field(s, field, 0, raw ? 0 : 8 - bytes, bytes);

		to.reversed = (w->var->type.order == AST_LE) ^ raw ^ o->swab;
		bring_operand(l, op, from, to, "operand");
		return 0;
	case AST_LOCATOR:
		bring_length(l, op, s);
		return 0;
	}
	return 0;
}

/* That of a publish begins as its variable does, also where nothing else can see it (verify/trace.c) */
static void arm_was(const struct step *s, struct word *w)
{
	if (s->publishes)
		memset(w->init, 0xff, WORD);
}

/* Where the old word goes first, if not to its variable */
static struct place word_of_was(struct lower *l, const struct step *s)
{
	struct word *w = lower_word(l, "was", WORD);

	arm_was(s, w);
	return lower_scratch(w, 0, WORD);
}

/* The old word goes to a variable, by way of scratch if that is narrower, does not lie together, or the
 * device gives the bytes of the word in reverse order */
static void lower_was(struct lower *l, struct op *op, struct step *s)
{
	const struct ast_verb *v = op->verb;
	struct place was = lower_target(l, op, v->was[0], v->was[0]->type.bytes), word;
	struct step *copy;

	if (was.kind == CHAIN_AT_NONE) {
		if (s->publishes) /* whoever arms the chain looks at it */
			*lower_local(l, s) = word_of_was(l, s);
		lower_append(l, s);
		return;
	}
	if (was.len == WORD && was.web->kind == WEB_MEMORY && was.web->nparts == 1 &&
		!l->target->swapped_old) {
		*lower_local(l, s) = was;
		arm_was(s, was.web->part[0].word);
		lower_append(l, s);
		return;
	}
	word = word_of_was(l, s);
	*lower_local(l, s) = word;
	lower_append(l, s);
	if (l->target->swapped_old) {
		word.from = WORD - was.len;
		word.reversed = true;
	}
	word.len = was.len;
	copy = lower_copy(l, op, word, was, "was");
	copy->must = true;
}

/* The fields of a structure lie together if each may lie anywhere; otherwise they are copied */
static void lower_fields_of_was(struct lower *l, struct op *op, struct step *s)
{
	const struct ast_verb *v = op->verb;
	struct word *all = lower_word(l, "was", WORD), *field[WORD];
	struct place to[WORD];
	bool together = !l->target->swapped_old;

	for (unsigned i = 0; i < v->nwas; i++) {
		to[i] = lower_target(l, op, v->was[i], v->was[i]->type.bytes);
		field[i] = whole_word(&to[i]);
		together &= field[i] != NULL;
	}
	if (!together)
		*lower_local(l, s) = lower_scratch(all, 0, WORD);
	for (unsigned i = 0, at = 0; i < v->nwas && together; at += to[i++].len) {
		field[i]->in = all;
		field[i]->at = at;
		*lower_local(l, s) = to[i];
		s->local[i].joins = i > 0;
	}
	lower_append(l, s);
	for (unsigned i = 0, at = 0; i < v->nwas && !together; at += v->was[i++]->type.bytes) {
		const uint32_t len = v->was[i]->type.bytes;
		struct place from = lower_scratch(all, l->target->swapped_old ? WORD - at - len : at, len);

		from.reversed = l->target->swapped_old;
		if (to[i].kind != CHAIN_AT_NONE)
			lower_copy(l, op, from, to[i], "was")->must = true;
	}
}

static void lower_atomic(struct lower *l, struct op *op)
{
	const struct ast_verb *v = op->verb;
	struct step *s = op->main;
	bool raw = v->place->kind == AST_AT_FIELD;
	uint64_t mask = compared(l, v);

	if (!l->target->masked_atomics && v->kind == AST_CAS && mask != v->mask) {
		lower_refuse(l, DEVICE, v->pos,
			"this device has no masked atomics, so a variable that is added to cannot be "
			"compared unless "
			"it is le64");
		return;
	}
	if (!l->target->masked_atomics &&
		(s->verb == CHAIN_MASKED_CAS || s->verb == CHAIN_MASKED_FETCH_ADD)) {
		lower_refuse(l, DEVICE, v->pos, "this device has no masked atomics; leave out `%s`",
			v->kind == AST_CAS ? "mask" : "fields");
		return;
	}
	if (v->kind == AST_CAS) {
		s->compare = operand(l, op, s, &v->old, CHAIN_F_COMPARE, raw);
		s->swap = operand(l, op, s, &v->swap, CHAIN_F_SWAP, raw);
		s->compare_mask = s->swap_mask = raw ? __builtin_bswap64(mask) : mask;
		s->publishes = v->located;
		s->extent = v->swap.kind == AST_LOCATOR;
		s->in_bucket = v->in_bucket;
		s->located = v->located ? (uint8_t)v->located->index : 0;
	} else {
		s->add = operand(l, op, s, &v->by, CHAIN_F_ADD, raw);
		s->boundary = v->fields;
	}
	s->remote = v->place->kind == AST_AT_REGION ? lower_region(l, op, s, -1, v->place, v->place->at)
						    : lower_target(l, op, v->place, WORD);
	s->remote.len = WORD;
	s->must = true;
	if (v->nwas > 1)
		lower_fields_of_was(l, op, s);
	else if (v->nwas)
		lower_was(l, op, s);
	else
		lower_append(l, s);
}

/* ---- all of them ------------------------------------------------------------------------------ */

/* Steps come before what refers to them: a patch may name a later statement's */
void lower_verb_begin(struct lower *l, struct op *op)
{
	static const uint8_t verbs[] = {
		[AST_READ] = CHAIN_READ,
		[AST_WRITE] = CHAIN_WRITE,
		[AST_WRITE_IMM] = CHAIN_WRITE_IMM,
		[AST_SEND] = CHAIN_SEND,
		[AST_NOP] = CHAIN_NOP,
		[AST_WAIT] = CHAIN_WAIT,
		[AST_ENABLE] = CHAIN_SEND_EN,
	};
	const struct ast_verb *v = op->verb;

	if (v->kind == AST_MOV)
		op->main = step_of_mov(l, op);
	else if (v->kind == AST_CALC)
		lower_calc_begin(l, op);
	else if (v->kind == AST_CAS)
		op->main =
			lower_step(l, op, compared(l, v) == UINT64_MAX ? CHAIN_CAS : CHAIN_MASKED_CAS, NULL);
	else if (v->kind == AST_ADD)
		op->main = lower_step(l, op, v->fields ? CHAIN_MASKED_FETCH_ADD : CHAIN_FETCH_ADD, NULL);
	else
		op->main = lower_step(l, op, verbs[v->kind], NULL);
	if (v->fence)
		op->main->flags |= CHAIN_FENCE;
}

void lower_verb(struct lower *l, struct op *op)
{
	struct step *s = op->main;

	switch ((enum ast_verb_kind)op->verb->kind) {
	case AST_READ:
		lower_read(l, op);
		return;
	case AST_WRITE:
	case AST_WRITE_IMM:
	case AST_SEND:
		lower_write(l, op);
		return;
	case AST_MOV:
		lower_mov(l, op);
		return;
	case AST_CALC:
		lower_calc(l, op);
		return;
	case AST_CAS:
	case AST_ADD:
		lower_atomic(l, op);
		return;
	case AST_NOP:
		lower_append(l, s);
		return;
	case AST_WAIT:
	case AST_ENABLE:
		s->pinned = true;
		s->request = s->verb == CHAIN_WAIT && !op->verb->target;
		if (s->verb == CHAIN_WAIT && op->verb->target)
			s->until = lower_step_of(l, op->verb->target);
		if (s->verb == CHAIN_SEND_EN)
			s->through = lower_step_of(l, op->verb->target);
		if (op->guard)
			lower_refuse(l, ORDER, op->verb->pos,
				"`%s` orders work requests whether or not the condition holds; move it out "
				"of the `if`, and before any `break`",
				op->verb->kind == AST_WAIT ? "wait" : "enable");
		lower_append(l, s);
		return;
	}
}
