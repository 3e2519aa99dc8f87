/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include <inttypes.h>
#include <string.h>

/* A patch leaves the part of an address alone that is the same in the whole region */
static bool keeps_region(struct sema *s, const struct ast_place *place, bool highest_byte)
{
	bool address = place->field == CHAIN_F_REMOTE_ADDR || place->field == CHAIN_F_LOCAL_ADDR;

	return place->kind != AST_AT_FIELD || !address || !highest_byte ||
	       sema_error(s, PLACE, place->pos,
		       "this replaces the highest byte of the address, which belongs to the region; "
		       "write the offset alone, such as a be%d",
		       8 * PROGRAM_MAX_OFFSET);
}

/* Notes that a verb writes @bytes bytes to @place */
static bool patches(struct sema *s, struct ast_place *place, uint64_t bytes)
{
	if (place->kind != AST_AT_FIELD)
		return true;
	place->patched = true;
	place->verb->patched |= 1u << place->field;
	if (place->field == CHAIN_F_LOCAL_LEN)
		place->verb->lengths |= 1u << place->sge;
	return keeps_region(s, place, place->one_byte ? place->byte == 0 : bytes == 8);
}

static bool writable(struct sema *s, const struct ast_place *place)
{
	return place->kind != AST_AT_REGION || place->region->writable ||
	       sema_error(s, PLACE, place->pos, "\"%s\" is not writable; declare it \"region %s writable\"",
		       place->region->name, place->region->name);
}

/* ---- read ------------------------------------------------------------------------------------- */

static bool is_new(const struct sema *s, const struct syn_expr *e)
{
	return e->kind == SYN_REF && !e->index && !e->field.word && !scope_find(s, e->name.word);
}

static bool add_piece(struct sema *s, struct ast_verb *v, struct ast_place *to, const struct ast_type *type)
{
	pool_grow(s->pool, v->piece, v->npieces);
	v->piece[v->npieces++] = (struct ast_piece){.to = to, .type = *type};
	if (to && !patches(s, to, type->bytes))
		return false;
	return v->npieces <= PROGRAM_MAX_SEGMENTS ||
	       sema_error(s, LIMIT, v->pos, "%u data segments; a WQE has room for %d", v->npieces,
		       PROGRAM_MAX_SEGMENTS);
}

static bool is_target(struct sema *s, const struct ast_place *to)
{
	return to->kind == AST_AT_VAR || to->kind == AST_AT_FIELD ||
	       sema_error(s, PLACE, to->pos, "a read lands in variables and WQEs; write %s from a variable",
		       to->kind == AST_AT_SLOT ? "the reply slot" : "a region");
}

/* The variable that @e declares */
static struct ast_place *implied(struct sema *s, const struct syn_expr *e, const struct ast_type *type)
{
	struct ast_place *place = pool_alloc(s->pool, sizeof(*place));

	*place = (struct ast_place){
		.kind = AST_AT_VAR, .type = *type, .pos = e->pos, .var = sema_imply(s, e->name, type)};
	return place;
}

/* @type of what is read goes to @e */
static bool read_typed(
	struct sema *s, struct ast_verb *v, const struct syn_expr *e, const struct ast_type *type)
{
	struct ast_place *to;

	if (is_new(s, e)) {
		to = implied(s, e, type);
	} else {
		const struct sym *sym = e->kind == SYN_REF ? scope_find(s, e->name.word) : NULL;
		bool used = sym && sym->used;

		to = sema_place(s, e);
		if (to && sym && sym->kind == SYM_VAR) /* to be written is no use */
			((struct sym *)sym)->used = used;
	}
	return to && is_target(s, to) && sema_assignable(s, type, to, e->pos) && add_piece(s, v, to, type);
}

static bool read_list(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	for (unsigned i = 0; i < syn->ninto; i++) {
		struct ast_place **list = NULL;
		unsigned n = 0;

		if (!sema_places(s, syn->into[i].to, &list, &n))
			return false;
		for (unsigned k = 0; k < n; k++) {
			if (!is_target(s, list[k]) || !add_piece(s, v, list[k], &list[k]->type))
				return false;
		}
	}
	return true;
}

/* One element of a structure that is read, and where to */
struct wanted {
	uint32_t at;
	const struct ast_type *type;
	const struct syn_into *into;
};

static bool want(struct sema *s, const struct sema_struct *st, const struct syn_into *into, struct wanted *w,
	unsigned n)
{
	uint32_t index;
	const struct sema_field *f = sema_field(s, st, into->field, into->field_index, &index);
	unsigned i = n;

	if (!f)
		return false;
	for (; i && w[i - 1].at > f->at + index * f->type.bytes; i--)
		w[i] = w[i - 1];
	w[i] = (struct wanted){f->at + index * f->type.bytes, &f->type, into};
	return !i || w[i - 1].at != w[i].at ||
	       sema_error(s, PLACE, into->field.pos,
		       "\"%s\" is read twice; read it into a variable and mov that", f->name);
}

static bool read_struct(
	struct sema *s, const struct syn_verb *syn, struct ast_verb *v, struct ast_place *from)
{
	const struct sym *sym = scope_need_kind(s, syn->as, SYM_STRUCT, ", not a structure");
	struct wanted w[PROGRAM_MAX_LIST];
	uint32_t at;

	if (!sym)
		return false;
	if (from->type.kind != AST_NONE)
		return sema_error(s, TYPE, syn->as.pos, "what is read has a type already: %s",
			sema_type_name(&from->type));
	for (unsigned i = 0; i < syn->ninto; i++) {
		if (!want(s, sym->of, &syn->into[i], w, i))
			return false;
	}
	/* the bytes before the first are not read at all, unless the address is patched */
	at = w[0].at;
	v->lead = at;
	from->at += at;
	if (!sema_in_reach(s, from->pos, from->at))
		return false;
	for (unsigned i = 0; i < syn->ninto; i++) {
		const struct ast_type gap = {.kind = AST_BYTES, .order = AST_ANY, .bytes = w[i].at - at};

		if (gap.bytes && !add_piece(s, v, NULL, &gap))
			return false;
		if (!read_typed(s, v, w[i].into->to, w[i].type))
			return false;
		at = w[i].at + w[i].type->bytes;
	}
	return true;
}

static bool read_parts(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *from = sema_place(s, syn->source[0]);

	if (!from)
		return false;
	if (from->kind == AST_AT_SLOT)
		return sema_error(s, PLACE, from->pos,
			"the reply slot is the client's memory; it can be written but not read");
	v->place = from;
	if (syn->as.word)
		return read_struct(s, syn, v, from);
	if (from->type.kind == AST_NONE)
		return read_list(s, syn, v);
	if (syn->ninto > 1)
		return sema_error(s, TYPE, syn->into[1].to->pos,
			"what is read is one value, %s, and goes to one place", sema_type_name(&from->type));
	return read_typed(s, v, syn->into[0].to, &from->type);
}

static bool verb_read(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	if (read_parts(s, syn, v))
		return true;
	for (unsigned i = 0; i < syn->ninto; i++) { /* what it would have declared is known to be wrong */
		if (is_new(s, syn->into[i].to))
			scope_declare(s, syn->into[i].to->name, SYM_BAD);
	}
	return false;
}

/* ---- write, write_imm, send, mov -------------------------------------------------------------- */

static bool add_source(struct sema *s, struct ast_verb *v, const struct ast_operand *op)
{
	if (op->kind == AST_ARG && op->type.kind == AST_UINT && op->type.order == AST_ANY &&
		op->type.bytes > 1)
		return sema_error(s, TYPE, op->pos,
			"\"%s\" is declared u%u, without a byte order in memory: declare it be%u or le%u",
			op->arg->name, 8 * op->type.bytes, 8 * op->type.bytes, 8 * op->type.bytes);
	pool_grow(s->pool, v->source, v->nsources);
	v->source[v->nsources++] = *op;
	return true;
}

static bool sources(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	for (unsigned i = 0; i < syn->nsources; i++) {
		const struct syn_expr *e = syn->source[i];
		const struct sym *sym = e->kind == SYN_REF ? scope_find(s, e->name.word) : NULL;
		struct ast_operand op;

		if (sym && sym->kind == SYM_VAR && sym->of && !e->field.word) {
			struct ast_place **list = NULL;
			unsigned n = 0;

			if (!sema_places(s, e, &list, &n))
				return false;
			for (unsigned k = 0; k < n; k++) {
				op = (struct ast_operand){.kind = AST_PLACE,
					.type = list[k]->type,
					.place = list[k],
					.pos = e->pos};
				if (!add_source(s, v, &op))
					return false;
			}
			continue;
		}
		if (!sema_operand(s, e, NULL, &op))
			return false;
		if (op.swab)
			return sema_error(s, TYPE, e->pos, "swab here; mov it into a variable first");
		if (!add_source(s, v, &op))
			return false;
	}
	return true;
}

static bool immediate(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	static const struct ast_type BE32 = {.kind = AST_UINT, .order = AST_BE, .bytes = 4};

	if (!syn->imm)
		return true;
	v->has_imm = true;
	if (!sema_operand(s, syn->imm, &BE32, &v->imm))
		return false;
	if (v->imm.kind == AST_PLACE)
		return sema_error(s, TYPE, v->imm.pos,
			"an immediate is a constant or an argument; for another, mov it into LABEL.imm");
	return (v->imm.type.kind == AST_UINT && v->imm.type.bytes <= 4 && v->imm.type.order != AST_LE) ||
	       sema_error(s, TYPE, v->imm.pos, "an immediate is u8 to u32, or big-endian; this is %s",
		       sema_type_name(&v->imm.type));
}

/* Sum of what is written if that is known, otherwise 0, and the options that say it */
static bool length(struct sema *s, const struct syn_verb *syn, struct ast_verb *v, uint64_t *total)
{
	const struct syn_expr *said = syn->bytes ? syn->bytes : syn->max;

	bool untyped = false;

	*total = 0;
	for (unsigned i = 0; i < v->nsources; i++) {
		if (v->source[i].type.kind != AST_NONE) {
			*total += v->source[i].type.bytes;
			continue;
		}
		if (untyped)
			return sema_error(s, PLACE, v->source[i].pos,
				"how much of \"%s\"? Of all but one in a list, say it: \"as bytes N\"",
				v->source[i].place->region->name);
		if (said && !sema_number(s, said, "the length", 1, PROGRAM_MAX_SLOT,
				    syn->bytes ? &v->bytes : &v->max))
			return false;
		if (syn->least && !sema_number(s, syn->least, "the least length", 1, v->max, &v->least))
			return false;
		*total += v->bytes + v->max;
		untyped = true;
	}
	return !said || untyped ||
	       sema_error(s, PLACE, said->pos, "the length is known: what is written has %" PRIu64 " bytes",
		       *total);
}

static bool has_room(struct sema *s, const struct ast_place *to, uint64_t total)
{
	if (to->kind == AST_AT_SLOT)
		return to->at + total <= PROGRAM_MAX_SLOT ||
		       sema_error(s, LIMIT, to->pos, "the reply ends behind byte %d of the slot",
			       PROGRAM_MAX_SLOT);
	return total <= PROGRAM_MAX_STORED ||
	       sema_error(s, LIMIT, to->pos, "a write puts up to %d bytes into a region", PROGRAM_MAX_STORED);
}

static bool verb_write(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *to = v->kind == AST_SEND ? NULL : sema_place(s, syn->into[0].to);
	uint64_t total;

	if (v->kind != AST_SEND && !to)
		return false;
	v->place = to;
	if (!sources(s, syn, v) || !immediate(s, syn, v) || !length(s, syn, v, &total))
		return false;
	if (!to)
		return true;
	if (v->kind == AST_WRITE_IMM && to->kind != AST_AT_SLOT)
		return sema_error(s, PLACE, to->pos,
			"write_imm signals the client, so it writes to slot; use write for other places");
	if (!writable(s, to) || !has_room(s, to, total))
		return false;
	if (!patches(s, to, total))
		return false;
	if (to->type.kind == AST_NONE || total == to->type.bytes)
		return true;
	return sema_error(
		s, PLACE, to->pos, "%" PRIu64 " bytes are written to %s", total, sema_type_name(&to->type));
}

/* Of an address that goes to another one, the offset does */
static bool is_address(const struct ast_place *p)
{
	return p->kind == AST_AT_FIELD && !p->one_byte &&
	       (p->field == CHAIN_F_REMOTE_ADDR || p->field == CHAIN_F_LOCAL_ADDR);
}

/* To a variable or into a region a number may also go that is narrower */
static bool widens(const struct ast_type *from, const struct ast_place *to)
{
	return to->kind != AST_AT_FIELD && from->kind == AST_UINT && to->type.kind == AST_UINT &&
	       from->bytes < to->type.bytes &&
	       (from->order == AST_ANY || from->bytes == 1 || from->order == to->type.order);
}

static bool is_payload(const struct sema *s, const struct syn_expr *e)
{
	const struct sym *sym = e->kind == SYN_REF ? scope_find(s, e->name.word) : NULL;

	return sym && sym->kind == SYM_PAYLOAD;
}

/* payload.length */
static bool length_of(
	struct sema *s, const struct syn_expr *e, const struct ast_place *to, struct ast_operand *op)
{
	struct ast_place *p = pool_alloc(s->pool, sizeof(*p));

	if (!e->field.word || strcmp(e->field.word, "length") || e->right || e->index || e->field_index)
		return sema_error(s, PLACE, e->pos, "of the payload a mov takes %s.length", e->name.word);
	if (to->kind == AST_AT_REGION)
		return sema_error(
			s, PLACE, e->pos, "the length goes to a variable or a WQE; mov that to the region");
	*p = (struct ast_place){.kind = AST_AT_LENGTH,
		.type = {.kind = AST_UINT, .order = AST_BE, .bytes = 4},
		.pos = e->pos};
	*op = (struct ast_operand){.kind = AST_PLACE, .type = p->type, .place = p, .pos = e->pos};
	return true;
}

/* Where a mov, or a result, goes. NULL, reported: it cannot */
static struct ast_place *destination(struct sema *s, const struct syn_verb *syn)
{
	struct ast_place *to = sema_place(s, syn->into[0].to);

	if (to && to->kind == AST_AT_SLOT) {
		sema_error(s, PLACE, to->pos,
			"%s goes to variables, WQEs and regions; what goes to slot is a write",
			syn->kind == AST_MOV ? "mov" : "a result");
		return NULL;
	}
	return to && sema_has_type(s, to) ? to : NULL;
}

static bool verb_mov(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *to = destination(s, syn);
	struct ast_operand op;

	if (!to)
		return false;
	if (!(is_payload(s, syn->source[0]) ? length_of(s, syn->source[0], to, &op)
					    : sema_operand(s, syn->source[0], &to->type, &op)))
		return false;
	if (op.kind == AST_PLACE && !sema_has_type(s, op.place))
		return false;
	if (op.kind == AST_PLACE && !op.swab && is_address(op.place) && is_address(to))
		op.type.bytes = PROGRAM_MAX_OFFSET;
	v->place = to;
	if (!writable(s, to) || (!widens(&op.type, to) && !sema_assignable(s, &op.type, to, op.pos)))
		return false;
	if (!patches(s, to, op.type.bytes))
		return false;
	if (op.kind == AST_CONST && widens(&op.type, to))
		op.type = to->type; /* the number is known: nothing has to be made wider */
	pool_grow(s->pool, v->source, v->nsources);
	v->source[v->nsources++] = op;
	return true;
}

/* ---- max, min, and, or, xor, add -------------------------------------------------------------- */

static bool calc_operand(struct sema *s, struct ast_verb *v, const struct syn_expr *e)
{
	const struct ast_type *to = &v->place->type;
	struct ast_operand op;

	if (!sema_operand(s, e, to, &op))
		return false;
	if (op.kind == AST_PLACE && op.place->kind == AST_AT_FIELD)
		return sema_error(s, TYPE, op.pos,
			"an operand is a constant, an argument, a variable or a place in a region; mov the "
			"field into a variable");
	if (op.swab)
		return sema_error(s, TYPE, op.pos, "swab here; mov it into a variable first");
	if (op.kind == AST_PLACE && !sema_has_type(s, op.place))
		return false;
	if (op.type.kind != AST_UINT)
		return sema_error(
			s, TYPE, op.pos, "an operand is a number; this is %s", sema_type_name(&op.type));
	if (op.type.bytes > to->bytes)
		return sema_error(s, TYPE, op.pos,
			"the operand is %s, and the result goes to %s, which is "
			"narrower",
			sema_type_name(&op.type), sema_type_name(to));
	pool_grow(s->pool, v->source, v->nsources);
	v->source[v->nsources++] = op;
	return true;
}

static bool verb_calc(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *to = destination(s, syn);

	if (!to)
		return false;
	if (to->type.kind != AST_UINT)
		return sema_error(s, TYPE, to->pos, "a result is a number; this place is %s",
			sema_type_name(&to->type));
	v->place = to;
	v->calc = syn->calc;
	if (!writable(s, to) || !patches(s, to, to->type.bytes))
		return false;
	return calc_operand(s, v, syn->source[0]) && calc_operand(s, v, syn->source[1]);
}

/* ---- cas, add --------------------------------------------------------------------------------- */

/* The word that an atomic works on */
static bool word(struct sema *s, struct ast_verb *v, struct ast_place *at)
{
	const struct ast_type *t = &at->type;

	v->place = at;
	if (at->kind == AST_AT_FIELD) {
		patches(s, at, 0); /* how much of it depends on the mask */
		return (v->kind == AST_CAS && t->bytes == 8) ||
		       sema_error(s, PLACE, at->pos,
			       "an atomic works on little-endian words of 8 bytes; fields of WQEs are "
			       "big-endian");
	}
	if (at->kind == AST_AT_SLOT)
		return sema_error(s, PLACE, at->pos,
			"the reply slot is the client's memory; an atomic works on the server's");
	if (!writable(s, at))
		return false;
	if (t->kind == AST_NONE)
		return sema_error(s, TYPE, at->pos, "the place has no type; an atomic works on \"as le64\"");
	if (t->kind != AST_UINT || t->order == AST_BE || (at->kind == AST_AT_REGION && t->bytes != 8))
		return sema_error(s, TYPE, at->pos, "an atomic works on %s, and this is %s",
			at->kind == AST_AT_REGION ? "le64" : "a little-endian number", sema_type_name(t));
	return at->kind != AST_AT_REGION || at->at % 8 == 0 ||
	       sema_error(s, VALUE, at->pos,
		       "an atomic works on aligned words: the offset, %" PRIu64 ", is no multiple of 8",
		       at->at);
}

static bool atomic_operand(
	struct sema *s, const struct syn_expr *e, const struct ast_type *type, struct ast_operand *op)
{
	if (!sema_operand(s, e, type, op))
		return false;
	if (op->kind == AST_CONST)
		return true;
	if (op->kind == AST_PLACE && op->place->kind != AST_AT_VAR)
		return sema_error(s, TYPE, op->pos, "an operand is a constant, an argument or a variable");
	if (op->swab)
		return sema_error(s, TYPE, op->pos, "swab here; mov it into a variable first");
	if (op->type.kind != AST_UINT || op->type.bytes > type->bytes ||
		(op->kind == AST_PLACE && !sema_same_type(&op->type, type)))
		return sema_error(s, TYPE, op->pos, "the operand is %s, for a word that is %s",
			sema_type_name(&op->type), sema_type_name(type));
	return true;
}

/* The word of an atomic may go to the fields of a structure */
static bool has_fields(const struct ast_verb *v)
{
	return v->place->type.order == AST_LE && v->place->type.bytes == 8;
}

/* Of @v->was, which may be the fields of a structure: they get the bytes of the word in the order of memory
 */
static bool takes_word(const struct ast_verb *v)
{
	uint32_t bytes = 0;

	if (v->nwas == 1)
		return v->was[0]->kind == AST_AT_VAR && sema_same_type(&v->was[0]->type, &v->place->type);
	for (unsigned i = 0; i < v->nwas; i++)
		bytes += v->was[i]->type.bytes;
	return has_fields(v) && bytes == v->place->type.bytes;
}

static bool old_value(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	if (!syn->was)
		return true;
	if (is_new(s, syn->was)) {
		pool_grow(s->pool, v->was, v->nwas);
		v->was[v->nwas++] = implied(s, syn->was, &v->place->type);
	} else if (!sema_places(s, syn->was, &v->was, &v->nwas)) {
		return false;
	}
	return takes_word(v) ||
	       sema_error(s, TYPE, syn->was->pos, "the old value goes into a variable that is %s%s",
		       sema_type_name(&v->place->type),
		       has_fields(v) ? ", or into a structure whose fields have 8 bytes" : "");
}

/* A constant that names bytes of a region: a be24, and behind it in memory a be40 */
static bool constant_locator(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	const struct sym *region =
		scope_need_kind(s, syn->located, SYM_REGION, "; a locator names a part of a region");
	uint64_t bytes = v->swap.kind == AST_CONST ? chain_located_bytes(v->swap.value) : 0, end;

	if (!region)
		return false;
	v->located = region->region;
	if (!bytes)
		return sema_error(s, VALUE, v->swap.pos,
			"a locator is the payload, or a constant that names at least one byte");
	end = chain_located_at(v->swap.value) + bytes;
	return !v->located->size || end <= v->located->size ||
	       sema_error(s, VALUE, v->swap.pos,
		       "the locator names bytes behind the end of \"%s\", which has "
		       "%" PRIu64,
		       region->word, v->located->size);
}

/* The new value, which may be a locator */
static bool new_value(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	if (is_payload(s, syn->swap) && !syn->swap->field.word && !syn->swap->index && !syn->located.word) {
		v->located = s->prog->payload->region;
		v->swap = (struct ast_operand){
			.kind = AST_LOCATOR, .type = v->place->type, .pos = syn->swap->pos};
	} else if (!atomic_operand(s, syn->swap, &v->place->type, &v->swap)) {
		return false;
	} else if (!syn->located.word) {
		return true;
	} else if (!constant_locator(s, syn, v)) {
		return false;
	}
	if (v->place->kind != AST_AT_REGION || syn->mask)
		return sema_error(s, PLACE, v->swap.pos, "a locator replaces a word of a region as a whole%s",
			syn->mask ? ", without a mask" : "");
	if (!syn->was)
		return sema_error(s, PLACE, v->swap.pos,
			"the word that a locator replaces must be kept: add \"was -> NAME\"");
	if (s->endless)
		return sema_error(s, LOOP, v->swap.pos,
			"a loop without a bound publishes nothing: an instance has one locator");
	if (s->publish)
		return sema_error(s, LIMIT, v->swap.pos,
			"a request publishes one locator, and line %u does that already",
			s->publish->pos.line);
	s->publish = v;
	return true;
}

/* Of a publish: all bits of a locator are never set, so the variable shows whether it has found one */
static bool arm_old_value(struct sema *s, const struct ast_verb *v)
{
	struct ast_var *was;

	if (v != s->publish)
		return true;
	if (v->nwas > 1)
		return sema_error(
			s, TYPE, v->was[0]->pos, "the word that a locator replaces goes into one variable");
	was = s->prog->var[v->was[0]->var->index];
	if (was->init != 0 && was->init != UINT64_MAX)
		return sema_error(s, VALUE, v->was[0]->pos,
			"\"%s\" begins with all bits set, which no locator has; leave out its value",
			was->name);
	was->init = UINT64_MAX;
	return true;
}

static bool verb_cas(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *at = sema_place(s, syn->source[0]);

	v->mask = UINT64_MAX;
	if (!at || !word(s, v, at))
		return false;
	if (!atomic_operand(s, syn->old, &at->type, &v->old) || !new_value(s, syn, v))
		return false;
	if (syn->mask && !sema_number(s, syn->mask, "the mask", 1, UINT64_MAX, &v->mask))
		return false;
	if (syn->mask && !sema_fits(&at->type, v->mask))
		return sema_error(
			s, TYPE, syn->mask->pos, "the mask is wider than %s", sema_type_name(&at->type));
	return keeps_region(s, at, v->mask >> 56) && old_value(s, syn, v) && arm_old_value(s, v);
}

static bool verb_add(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	struct ast_place *at = sema_place(s, syn->source[0]);

	if (!at || !word(s, v, at) || !atomic_operand(s, syn->by, &at->type, &v->by))
		return false;
	if (syn->minus && v->by.kind != AST_CONST)
		return sema_error(s, VALUE, v->by.pos, "only a constant can be subtracted");
	if (syn->minus)
		v->by.value = -v->by.value & (UINT64_MAX >> (64 - 8 * at->type.bytes));
	if (syn->fields && (!sema_number(s, syn->fields, "the mask of fields", 1, UINT64_MAX, &v->fields) ||
				   !sema_fits(&at->type, v->fields)))
		return sema_error(
			s, TYPE, syn->fields->pos, "the mask is wider than %s", sema_type_name(&at->type));
	return old_value(s, syn, v);
}

/* ---- wait, enable ----------------------------------------------------------------------------- */

static bool verb_target(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	/* A mov or a calculation may take no WR, or several; an order is left out where another one has it
	 * already */
	static const char *const what[] = {[AST_MOV] = "a mov",
		[AST_CALC] = "a calculation",
		[AST_WAIT] = "a wait",
		[AST_ENABLE] = "an enable"};
	const struct sym *sym;

	if (!syn->target.word)
		return true;
	sym = scope_need(s, syn->target);
	if (!sym)
		return false;
	if (sym->kind != SYM_LABEL || what[sym->verb->kind])
		return sema_error(s, PLACE, syn->target.pos,
			"\"%s\" is %s; what can be waited for or enabled is the label of a WR", sym->word,
			sym->kind == SYM_LABEL ? what[sym->verb->kind] : scope_what(sym));
	v->target = sym->verb;
	return true;
}

bool sema_verb(struct sema *s, const struct syn_verb *syn, struct ast_verb *v)
{
	switch ((enum ast_verb_kind)syn->kind) {
	case AST_READ:
		return verb_read(s, syn, v);
	case AST_WRITE:
	case AST_WRITE_IMM:
	case AST_SEND:
		return verb_write(s, syn, v);
	case AST_MOV:
		return verb_mov(s, syn, v);
	case AST_CALC:
		return verb_calc(s, syn, v);
	case AST_CAS:
		return verb_cas(s, syn, v);
	case AST_ADD:
		return verb_add(s, syn, v);
	case AST_WAIT:
	case AST_ENABLE:
		return verb_target(s, syn, v);
	case AST_NOP:
		break;
	}
	return true;
}

/* ---- when all verbs are known ----------------------------------------------------------------- */

static bool is_made(const struct sema *s, const struct ast_verb *v)
{
	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		if (s->prog->verb[i] == v)
			return true;
	}
	return false;
}

static void check_length(struct sema *s, const struct ast_verb *v)
{
	bool untyped = false, patched = false;

	if (v->kind != AST_WRITE && v->kind != AST_WRITE_IMM && v->kind != AST_SEND)
		return;
	for (unsigned i = 0; i < v->nsources; i++)
		if (v->source[i].type.kind == AST_NONE) {
			untyped = true;
			patched = v->lengths & 1u << i;
		}
	if (untyped && !patched && v->max)
		sema_error(s, PLACE, v->pos,
			"\"%s\" bounds a length that is patched, and nothing patches this one; say \", "
			"%" PRIu64 " bytes\"",
			v->least ? "to" : "max", v->max);
	else if (untyped && !patched && !v->bytes)
		sema_error(s, PLACE, v->pos,
			"how much is written? Say it (\", 64 bytes\"), or let a read patch the length of a "
			"label");
}

/* The length that is patched is of a source whose length the text does not give */
static bool is_open(struct sema *s, const struct ast_place *p)
{
	const struct ast_verb *v = p->verb;

	if (p->field != CHAIN_F_LOCAL_LEN || !p->patched)
		return true;
	if (v->kind == AST_READ || v->source[p->sge].type.kind != AST_NONE)
		return sema_error(s, PLACE, p->pos,
			"the type of data segment %u of \"%s\" gives its length; only the length of a "
			"region without a type can be patched",
			p->sge, v->name);
	return !v->bytes || sema_error(s, PLACE, p->pos,
				    "this patches a length that \"%s\" gives itself: instead of \"%" PRIu64
				    " bytes\" say \"max %" PRIu64 "\", or \"1 to %" PRIu64
				    "\" if the region's writer vouches for it",
				    v->name, v->bytes, v->bytes, v->bytes);
}

/* A field that is patched gets its value from nothing else, which would come before or after that as it is
 * compiled */
static bool check_sources(struct sema *s, const struct ast_place *p)
{
	const struct ast_verb *v = p->verb;
	const struct ast_place *at = NULL;
	const struct ast_operand *o = NULL;

	if (p->field == CHAIN_F_REMOTE_ADDR)
		at = v->place;
	else if (p->field == CHAIN_F_LOCAL_ADDR && v->kind != AST_READ && v->source[p->sge].kind == AST_PLACE)
		at = v->source[p->sge].place;
	if (at && at->kind == AST_AT_REGION && at->nterms)
		return sema_error(s, PLACE, p->pos,
			"the address of \"%s\" is computed from \"%s\" already; leave one of the two out",
			v->name, at->term[0].arg ? at->term[0].arg->name : at->term[0].var->name);
	if (p->field == CHAIN_F_COMPARE)
		o = &v->old;
	else if (p->field == CHAIN_F_SWAP)
		o = &v->swap;
	else if (p->field == CHAIN_F_ADD)
		o = &v->by;
	if (o && v->place->kind == AST_AT_FIELD)
		return sema_error(s, PLACE, p->pos,
			"\"%s\" changes a field of a WQE, and has its operands in another order of bytes; "
			"keep the value in a variable, and name that here",
			v->name);
	if (!(v->patched & 1u << p->field))
		return true;
	if ((o && o->kind == AST_PLACE) || (p->field == CHAIN_F_IMM && v->has_imm && v->imm.kind == AST_ARG))
		return sema_error(s, PLACE, p->pos,
			"\"%s\" gets \"%s\" when it runs, which replaces the patch; leave one of the two out",
			v->name, o ? o->place->var->name : v->imm.arg->name);
	if (o && o->kind == AST_LOCATOR)
		return sema_error(s, PLACE, p->pos,
			"\"%s\" gets the locator of the payload, which replaces the patch", v->name);
	if (o && v->place->kind == AST_AT_VAR && v->place->type.bytes < 8)
		return sema_error(s, PLACE, p->pos,
			"\"%s\" is %s, and what is patched has 8 bytes; declare it le64", v->place->var->name,
			sema_type_name(&v->place->type));
	return true;
}

void sema_check_fields(struct sema *s)
{
	for (unsigned i = 0; i < s->nfields; i++) {
		const struct ast_place *p = s->fields[i];
		unsigned n = p->verb->kind == AST_READ ? p->verb->npieces : p->verb->nsources;

		if (!is_made(s, p->verb))
			sema_error(s, PLACE, p->pos,
				"the label is in the branch of an \"if\" that is not taken");
		else if ((p->field == CHAIN_F_LOCAL_ADDR || p->field == CHAIN_F_LOCAL_LEN) && p->sge >= n)
			sema_error(s, PLACE, p->pos, "there is no local[%u]: \"%s\" has %u data segment%s",
				p->sge, p->verb->name, n, n == 1 ? "" : "s");
		else if (!is_open(s, p))
			continue;
		else if (p->patched && !sema_reaches_rest(p))
			sema_error(s, PLACE, p->pos,
				"when the length of \"%s\" is 0, another work request is executed in its "
				"place, which this does not patch; if it never is, say \"1 to %" PRIu64 "\"",
				p->verb->name, p->verb->max ? p->verb->max : PROGRAM_MAX_SLOT);
		else
			check_sources(s, p);
	}
	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		const struct ast_verb *v = s->prog->verb[i];

		check_length(s, v);
		if (v->target && !is_made(s, v->target))
			sema_error(s, PLACE, v->pos,
				"the label is in the branch of an \"if\" that is not taken");
	}
}
