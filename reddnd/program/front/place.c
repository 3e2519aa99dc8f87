/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include "reddnd/program/front/lex.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *word;
	uint8_t field;
} FIELDS[] = {{"remote", CHAIN_F_REMOTE_ADDR}, {"addr", CHAIN_F_LOCAL_ADDR}, {"length", CHAIN_F_LOCAL_LEN},
	{"imm", CHAIN_F_IMM}, {"compare", CHAIN_F_COMPARE}, {"swap", CHAIN_F_SWAP}, {"add", CHAIN_F_ADD}};
enum { NFIELDS = sizeof(FIELDS) / sizeof(FIELDS[0]) };

/* The fields that a program can neither read nor write, since the proofs rely on them */
static const struct {
	const char *word, *what, *instead;
} CLOSED[] = {{"rkey", "a key", "it is what keeps a program inside its regions"},
	{"lkey", "a key", "it is what keeps a program inside its regions"},
	{"opcode", "an opcode", "put the verb inside an \"if\" to decide whether it runs"},
	{"id", "a control segment", "put the verb inside an \"if\" to decide whether it runs"},
	{"index", "an index",
		"name the work request by its label, as in \"wait LABEL\" or \"enable LABEL\""}};
enum { NCLOSED = sizeof(CLOSED) / sizeof(CLOSED[0]) };

static enum chain_verb chain_verb(const struct ast_verb *v)
{
	switch ((enum ast_verb_kind)v->kind) {
	case AST_READ:
		return CHAIN_READ;
	case AST_WRITE:
		return CHAIN_WRITE;
	case AST_WRITE_IMM:
		return CHAIN_WRITE_IMM;
	case AST_SEND:
		return CHAIN_SEND;
	case AST_CAS:
		return ~v->mask ? CHAIN_MASKED_CAS : CHAIN_CAS;
	case AST_ADD:
		return v->fields ? CHAIN_MASKED_FETCH_ADD : CHAIN_FETCH_ADD;
	case AST_WAIT:
		return CHAIN_WAIT;
	case AST_ENABLE:
		return CHAIN_SEND_EN;
	case AST_NOP:
	case AST_MOV:
	case AST_CALC:
		break;
	}
	return CHAIN_NOP;
}

/* label.field, label.local[n].addr */
static bool wqe_field(
	struct sema *s, const struct syn_expr *e, const struct sym *label, struct ast_place *place)
{
	const struct syn_name *name = &e->field;
	const struct ast_verb *v = label->verb;
	unsigned size = 0;
	uint64_t sge = 0, byte = 0;

	if (e->index)
		return sema_error(s, TYPE, e->index->pos, "\"%s\" is a label, not an array", label->word);
	if (!name->word)
		return sema_error(s, TYPE, e->pos,
			"\"%s\" is a label; say which field of it, for example %s.length", label->word,
			label->word);
	if (v->kind == AST_MOV || v->kind == AST_CALC)
		return sema_error(s, TYPE, e->pos,
			"\"%s\" is a %s, which has no fields; label a read or write", label->word,
			v->kind == AST_MOV ? "mov" : "calculation");
	for (unsigned f = 0; f < NCLOSED; f++)
		if (!strcmp(CLOSED[f].word, name->word))
			return sema_error(s, PLACE, name->pos, "%s cannot be touched: %s", CLOSED[f].what,
				CLOSED[f].instead);
	if (!strcmp(name->word, "local")) {
		if (!e->field_index || !e->right)
			return sema_error(s, PLACE, e->pos, "write %s.local[N].addr or %s.local[N].length",
				label->word, label->word);
		if (!sema_number(s, e->field_index, "the data segment", 0, PROGRAM_MAX_SEGMENTS - 1, &sge))
			return false;
		name = &e->right->name;
		if (strcmp(name->word, "addr") && strcmp(name->word, "length"))
			return sema_error(s, PLACE, name->pos, "a data segment has addr and length");
	} else if (e->right ||
		   (e->field_index && strcmp(name->word, "remote") && strcmp(name->word, "addr"))) {
		return sema_error(s, PLACE, e->pos,
			"only \"local\" has elements, as in %s.local[1].addr, and addresses have bytes, as "
			"in %s.remote[7]",
			label->word, label->word);
	} else if (e->field_index) {
		if (!sema_number(s, e->field_index, "the byte of an address", 0, 7, &byte))
			return false;
		place->one_byte = true;
		place->byte = (uint8_t)byte;
	}
	for (unsigned f = 0; f < NFIELDS; f++) {
		if (strcmp(FIELDS[f].word, name->word))
			continue;
		place->kind = AST_AT_FIELD;
		place->verb = label->verb;
		place->field = FIELDS[f].field;
		place->sge = (uint8_t)sge;
		if (chain_field_at(chain_verb(v), place->field, 0, &size) < 0 ||
			((v->kind == AST_CAS || v->kind == AST_ADD) &&
				(place->field == CHAIN_F_LOCAL_ADDR || place->field == CHAIN_F_LOCAL_LEN)))
			return sema_error(s, NAME, name->pos, "a %s has no field \"%s\"",
				chain_verb_info(chain_verb(v))->name, name->word);
		place->type = (struct ast_type){.kind = AST_UINT, .order = AST_BE, .bytes = size};
		if (place->one_byte)
			place->type = (struct ast_type){.kind = AST_UINT, .order = AST_ANY, .bytes = 1};
		pool_grow(s->pool, s->fields, s->nfields);
		s->fields[s->nfields++] = place;
		return true;
	}
	const char *words[NFIELDS];
	char hint[TEXT_HINT];

	for (unsigned f = 0; f < NFIELDS; f++)
		words[f] = FIELDS[f].word;
	return sema_error(s, NAME, name->pos, "a WQE has no field \"%s\"%s", name->word,
		text_hint(hint, name->word, words, NFIELDS, ""));
}

/* Which element and field of an argument or a variable: the first number, and how many there are */
static bool element(
	struct sema *s, const struct syn_expr *e, const struct sym *sym, unsigned *first, unsigned *n)
{
	const struct sema_field *f;
	uint32_t index, field_index;

	if (e->right)
		return sema_error(s, TYPE, e->right->name.pos, "\"%s\" has no fields", e->field.word);
	if (!sema_index(s, e->index, e->name.pos, sym->word, sym->count, &index))
		return false;
	*first = index;
	*n = 1;
	if (!sym->of)
		return !e->field.word || sema_error(s, TYPE, e->field.pos, "\"%s\" has no fields", sym->word);
	*n = sema_field_count(sym->of);
	*first *= *n;
	if (!e->field.word)
		return true;
	f = sema_field(s, sym->of, e->field, e->field_index, &field_index);
	if (!f)
		return false;
	*first += sema_field_number(sym->of, f, field_index);
	*n = 1;
	return true;
}

static const struct ast_arg *argument(struct sema *s, const struct syn_expr *e, const struct sym *sym)
{
	unsigned first, n;

	if (!element(s, e, sym, &first, &n))
		return NULL;
	if (sym->of && !e->field.word) {
		sema_error(s, TYPE, e->pos, "\"%s\" has fields; say which, for example %s", sym->word,
			sym->arg[first]->name);
		return NULL;
	}
	return sym->arg[first];
}

static struct ast_place *append(
	struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n)
{
	struct ast_place *place = pool_alloc(s->pool, sizeof(*place));

	place->pos = e->pos;
	pool_grow(s->pool, *list, *n);
	(*list)[(*n)++] = place;
	return place;
}

static bool region_place(
	struct sema *s, const struct syn_expr *e, const struct sym *sym, struct ast_place *place)
{
	const struct sema_field *f;
	uint32_t index;

	place->kind = AST_AT_REGION;
	place->region = sym->region;
	if (e->index)
		return sema_error(s, TYPE, e->index->pos,
			"\"%s\" is a region; a place in it is %s @ OFFSET, in bytes", sym->word, sym->word);
	if (e->right)
		return sema_error(s, TYPE, e->right->name.pos, "\"%s\" has no fields", e->field.word);
	if (!e->field.word)
		return true;
	if (!sym->of)
		return sema_error(s, TYPE, e->field.pos,
			"\"%s\" has no fields: it is not declared as a region of a structure", sym->word);
	f = sema_field(s, sym->of, e->field, e->field_index, &index);
	if (!f)
		return false;
	place->at = f->at + index * f->type.bytes;
	place->type = f->type;
	return true;
}

static bool reference(struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n)
{
	struct sym *sym = scope_need(s, e->name);
	unsigned first, count;

	if (!sym)
		return false;
	switch ((enum sym_kind)sym->kind) {
	case SYM_VAR:
		if (!element(s, e, sym, &first, &count))
			return false;
		sym->used = true;
		for (unsigned i = 0; i < count; i++) {
			struct ast_place *place = append(s, e, list, n);

			place->kind = AST_AT_VAR;
			place->var = sym->var[first + i];
			place->type = place->var->type;
		}
		return true;
	case SYM_REGION:
		return region_place(s, e, sym, append(s, e, list, n));
	case SYM_LABEL:
		return wqe_field(s, e, sym, append(s, e, list, n));
	case SYM_NUMBER:
	case SYM_ARG:
	case SYM_STRUCT:
	case SYM_QUEUE:
	case SYM_PAYLOAD:
	case SYM_OPEN:
	case SYM_BAD:
		break;
	}
	return sema_error(s, TYPE, e->pos,
		"\"%s\" is %s, where a place should be: a variable, LABEL.FIELD, REGION @ OFFSET or slot",
		sym->word, scope_what(sym));
}

static bool term(struct sema *s, const struct syn_expr *e, struct ast_place *place)
{
	struct sym *sym = e->kind == SYN_REF ? scope_need(s, e->name) : NULL;
	struct ast_term t = {.pos = e->pos};
	unsigned first, n;

	if (e->kind == SYN_REF && !sym)
		return false;
	if (!sym || (sym->kind != SYM_ARG && sym->kind != SYM_VAR))
		return sema_error(s, PLACE, e->pos,
			"an offset is a sum of constants, arguments and variables, in bytes: a NIC does "
			"nothing else with addresses");
	if (sym->kind == SYM_ARG) {
		t.arg = argument(s, e, sym);
		if (!t.arg)
			return false;
		if (t.arg->type.kind != AST_OFFSET)
			return sema_error(s, TYPE, e->pos,
				"\"%s\" is %s; what a client may use as an offset is declared offset(N) in "
				"%s",
				t.arg->name, sema_type_name(&t.arg->type), place->region->name);
		if (t.arg->type.window != place->region)
			return sema_error(s, PLACE, e->pos, "\"%s\" is an %s, not in %s", t.arg->name,
				sema_type_name(&t.arg->type), place->region->name);
	} else {
		if (!element(s, e, sym, &first, &n))
			return false;
		if (n != 1 || sym->var[first]->type.kind != AST_UINT)
			return sema_error(
				s, TYPE, e->pos, "an offset is a number, which \"%s\" is not", sym->word);
		sym->used = true;
		t.var = sym->var[first];
	}
	if (place->nterms == sizeof(place->term) / sizeof(place->term[0]))
		return sema_error(s, PLACE, e->pos, "an offset may have two parts that are not constant");
	place->term[place->nterms++] = t;
	return true;
}

static bool offset(struct sema *s, const struct syn_expr *e, struct ast_place *place)
{
	uint64_t value;
	enum sema_constness c = sema_eval(s, e, &value);

	if (c == SEMA_ERROR)
		return false;
	if (c == SEMA_CONST) {
		if (__builtin_add_overflow(place->at, value, &place->at))
			return sema_error(s, VALUE, e->pos, "the offset does not fit into 64 bits");
		return true;
	}
	if (e->kind == SYN_BINARY && e->op == '+')
		return offset(s, e->left, place) && offset(s, e->right, place);
	return term(s, e, place);
}

static bool slot(struct sema *s, const struct syn_expr *at, struct ast_place *place)
{
	place->kind = AST_AT_SLOT;
	return !at || sema_number(s, at, "the offset in the reply slot", 0, PROGRAM_MAX_SLOT, &place->at);
}

bool sema_has_type(struct sema *s, const struct ast_place *place)
{
	return place->type.kind != AST_NONE ||
	       sema_error(s, TYPE, place->pos, "the place has no type; say it, as in \"%s @ 8 as be32\"",
		       place->region->name);
}

bool sema_in_reach(struct sema *s, struct diag_pos pos, uint64_t at)
{
	return at <= PROGRAM_MAX_CONSTANT || sema_error(s, VALUE, pos,
						     "the constant part of the offset is %" PRIu64
						     "; it may be 0 to %u; what is larger can be in a "
						     "variable",
						     at, (unsigned)PROGRAM_MAX_CONSTANT);
}

static bool in_region(struct sema *s, const struct ast_place *p)
{
	uint64_t end;

	if (p->kind != AST_AT_REGION || !p->region->size)
		return true;
	if (!__builtin_add_overflow(p->at, p->type.bytes, &end) && end <= p->region->size)
		return true;
	return sema_error(s, VALUE, p->pos,
		"the place is behind the end of \"%s\", which has %" PRIu64 " bytes", p->region->name,
		p->region->size);
}

static bool at(struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n)
{
	const struct sym *sym;
	struct ast_place *place;

	if (e->left->kind == SYN_SLOT)
		return slot(s, e->right, append(s, e, list, n));
	sym = e->left->kind == SYN_REF ? scope_need(s, e->left->name) : NULL;
	if (e->left->kind == SYN_REF && !sym)
		return false;
	if (!sym || sym->kind != SYM_REGION)
		return sema_error(s, PLACE, e->left->pos, "what comes before \"@\" is a region or slot%s%s",
			sym ? ", not " : "", sym ? scope_what(sym) : "");
	place = append(s, e, list, n);
	if (!region_place(s, e->left, sym, place) || !offset(s, e->right, place))
		return false;
	if (!sema_in_reach(s, e->right->pos, place->at))
		return false;
	return in_region(s, place);
}

static bool as(struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n)
{
	struct ast_place *place = sema_place(s, e->left);
	struct ast_type type;

	if (!place || !sema_type(s, &e->type, &type))
		return false;
	if (place->kind != AST_AT_REGION || place->type.kind != AST_NONE)
		return sema_error(
			s, TYPE, e->type.pos, "\"as\" gives a type to a place in a region that has none");
	if (type.kind == AST_OFFSET)
		return sema_error(s, TYPE, e->type.pos,
			"only an argument is an offset; here it is a number, be%u", 8 * type.bytes);
	if (!sema_has_order(s, e->type.pos, &type))
		return false;
	place->type = type;
	place->pos = e->pos;
	pool_grow(s->pool, *list, *n);
	(*list)[(*n)++] = place;
	return in_region(s, place);
}

bool sema_places(struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n)
{
	switch ((enum syn_expr_kind)e->kind) {
	case SYN_REF:
		return reference(s, e, list, n);
	case SYN_AT:
		return at(s, e, list, n);
	case SYN_AS:
		return as(s, e, list, n);
	case SYN_SLOT:
		return slot(s, NULL, append(s, e, list, n));
	case SYN_NUMBER:
	case SYN_BINARY:
	case SYN_NOT:
	case SYN_SWAB:
	case SYN_SIZEOF:
		break;
	}
	return sema_error(
		s, PLACE, e->pos, "a place should be here: a variable, LABEL.FIELD, REGION @ OFFSET or slot");
}

struct ast_place *sema_place(struct sema *s, const struct syn_expr *e)
{
	struct ast_place **list = NULL;
	unsigned n = 0;

	if (!sema_places(s, e, &list, &n))
		return NULL;
	if (n != 1) {
		sema_error(s, TYPE, e->pos, "\"%s\" is a structure; say which field of it", e->name.word);
		return NULL;
	}
	return list[0];
}

static bool constant(struct sema *s, struct diag_pos pos, uint64_t value, const struct ast_type *type,
	struct ast_operand *op)
{
	if (!type || type->kind == AST_NONE)
		return sema_error(s, TYPE, pos,
			"a constant needs a type here, for example \"%" PRIu64 " as be64\"", value);
	if (type->kind == AST_BYTES)
		return sema_error(
			s, TYPE, pos, "a number, where the other side is \"%s\"", sema_type_name(type));
	if (!sema_fits(type, value))
		return sema_error(s, VALUE, pos, "%" PRIu64 " (0x%" PRIx64 ") does not fit into %s", value,
			value, sema_type_name(type));
	op->kind = AST_CONST;
	op->value = value;
	op->type = *type;
	op->type.window = NULL;
	if (op->type.kind == AST_OFFSET)
		op->type.kind = AST_UINT;
	return true;
}

static bool swab(struct sema *s, const struct syn_expr *e, struct ast_operand *op)
{
	op->place = sema_place(s, e->left);
	if (!op->place)
		return false;
	op->kind = AST_PLACE;
	op->swab = true;
	op->type = op->place->type;
	if (op->place->kind == AST_AT_SLOT || op->type.kind != AST_UINT || op->type.order == AST_ANY)
		return sema_error(s, TYPE, e->pos,
			"swab takes a number of at least two bytes, in a variable, a region or a WQE");
	op->type.order = op->type.order == AST_BE ? AST_LE : AST_BE;
	return true;
}

bool sema_operand(
	struct sema *s, const struct syn_expr *e, const struct ast_type *type, struct ast_operand *op)
{
	const struct sym *sym = e->kind == SYN_REF ? scope_find(s, e->name.word) : NULL;
	const struct syn_expr *value_of = e->kind == SYN_AS ? e->left : e;
	enum sema_constness c;
	struct ast_type said;
	uint64_t value;

	*op = (struct ast_operand){.pos = e->pos};
	if (e->kind == SYN_SWAB)
		return swab(s, e, op);
	c = sema_eval(s, value_of, &value);
	if (c == SEMA_ERROR)
		return false;
	if (c == SEMA_CONST) {
		if (value_of == e)
			return constant(s, e->pos, value, type, op);
		return sema_type(s, &e->type, &said) && sema_has_order(s, e->type.pos, &said) &&
		       constant(s, e->pos, value, &said, op);
	}
	if (sym && sym->kind == SYM_ARG) {
		op->kind = AST_ARG;
		op->arg = argument(s, e, sym);
		if (!op->arg)
			return false;
		op->type = op->arg->type;
		return true;
	}
	if (e->kind == SYN_BINARY || e->kind == SYN_NOT)
		return sema_error(s, PLACE, e->pos, "a NIC does not calculate; use add, and a variable");
	op->kind = AST_PLACE;
	op->place = sema_place(s, e);
	if (!op->place)
		return false;
	if (op->place->kind == AST_AT_SLOT)
		return sema_error(s, PLACE, e->pos,
			"the reply slot is the client's memory; it can be written but not read");
	op->type = op->place->type;
	return true;
}

/* An operand of an atomic is a number, which a little-endian one is as well with its bytes turned */
static bool takes_any_order(const struct ast_place *to)
{
	return to->kind == AST_AT_FIELD &&
	       (to->field == CHAIN_F_COMPARE || to->field == CHAIN_F_SWAP || to->field == CHAIN_F_ADD);
}

bool sema_assignable(
	struct sema *s, const struct ast_type *type, const struct ast_place *to, struct diag_pos pos)
{
	const struct ast_type *dst = &to->type;
	struct ast_type from = *type;

	if (from.kind == AST_OFFSET) {
		from.kind = AST_UINT;
		from.window = NULL;
	}
	if (from.kind == AST_UINT && dst->kind == AST_UINT && from.order != dst->order &&
		from.order != AST_ANY && dst->order != AST_ANY && !takes_any_order(to) &&
		(from.bytes == dst->bytes || to->kind == AST_AT_FIELD))
		return sema_error(s, TYPE, pos,
			"%s into %s: the byte orders differ; mov swab(...) turns one into the other",
			sema_type_name(&from),
			to->kind == AST_AT_FIELD ? "a field of a WQE, which is big-endian"
						 : sema_type_name(dst));
	if (to->kind == AST_AT_FIELD) {
		if (from.kind != AST_UINT)
			return sema_error(s, TYPE, pos, "%s into a field of a WQE, which is a number",
				sema_type_name(&from));
		return from.bytes <= dst->bytes || sema_error(s, TYPE, pos, "%s into a field of %u bytes",
							   sema_type_name(&from), dst->bytes);
	}
	return sema_same_type(&from, dst) ||
	       sema_error(s, TYPE, pos, "%s into %s; both sides must have the same type",
		       sema_type_name(&from), sema_type_name(dst));
}
