/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include "util/text.h"

#include <inttypes.h>
#include <string.h>

static const struct program_setting *setting(const struct sema *s, const char *name)
{
	for (unsigned i = 0; i < s->nsettings; i++) {
		if (!strcmp(s->setting[i].name, name))
			return &s->setting[i];
	}
	return NULL;
}

static void declare_param(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);
	const struct program_setting *set = setting(s, st->name.word);
	struct ast_param p = {.name = st->name.word, .pos = st->name.pos};

	if (s->prog->nparams == PROGRAM_MAX_PARAMS) {
		sema_error(s, LIMIT, st->pos, "more than %d params", PROGRAM_MAX_PARAMS);
		return;
	}
	if (!sema_number(s, st->lo, "the range", 0, UINT64_MAX, &p.lo) ||
		!sema_number(s, st->hi, "the range", 0, UINT64_MAX, &p.hi))
		return;
	if (p.lo > p.hi) {
		sema_error(s, VALUE, st->lo->pos, "nothing is from %" PRIu64 " to %" PRIu64, p.lo, p.hi);
		return;
	}
	if (!sema_number(s, st->value, "the default", p.lo, p.hi, &p.by_default))
		return;
	p.value = set ? set->value : p.by_default;
	if (p.value < p.lo || p.value > p.hi) {
		sema_error(s, VALUE, st->name.pos,
			"\"%s\" is set to %" PRIu64 "; it may be %" PRIu64 " to %" PRIu64, p.name, p.value,
			p.lo, p.hi);
		return;
	}
	pool_grow(s->pool, s->prog->param, s->prog->nparams);
	s->prog->param[s->prog->nparams++] = p;
	sym->kind = SYM_NUMBER;
	sym->number = p.value;
}

void sema_check_settings(struct sema *s)
{
	const char *words[PROGRAM_MAX_PARAMS];
	unsigned n = s->prog->nparams;

	for (unsigned i = 0; i < n; i++)
		words[i] = s->prog->param[i].name;
	for (unsigned i = 0; i < s->nsettings; i++) {
		const char *name = s->setting[i].name;
		char hint[TEXT_HINT];
		bool known = false;

		for (unsigned k = 0; k < n; k++)
			known |= !strcmp(words[k], name);
		if (known)
			continue;
		sema_error(s, NAME, (struct diag_pos){0}, "there is no param \"%s\" to be set%s", name,
			text_hint(hint, name, words, n, ""));
	}
}

static void declare_const(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);

	if (sema_number(s, st->value, "the value", 0, UINT64_MAX, &sym->number))
		sym->kind = SYM_NUMBER;
}

static void declare_region(struct sema *s, const struct syn_stmt *st)
{
	const struct sym *of = NULL;
	uint64_t size = 0;
	bool fine = true;

	if (st->of.word) {
		of = scope_need_kind(s, st->of, SYM_STRUCT, "; a region is of a structure");
		fine = of;
	}
	if (st->value && !sema_number(s, st->value, "the size", 1, UINT64_MAX >> 1, &size))
		fine = false;
	for (unsigned i = 0; i < st->nnames; i++) {
		struct sym *sym = scope_declare(s, st->names[i], SYM_OPEN);
		struct ast_region *r = pool_alloc(s->pool, sizeof(*r));

		if (s->prog->nregions == PROGRAM_MAX_REGIONS) {
			sema_error(s, LIMIT, st->names[i].pos, "more than %d regions", PROGRAM_MAX_REGIONS);
			return;
		}
		*r = (struct ast_region){.name = st->names[i].word,
			.index = s->prog->nregions,
			.writable = st->writable,
			.steered = st->steered,
			.size = size,
			.pos = st->names[i].pos};
		pool_grow(s->pool, s->prog->region, s->prog->nregions);
		s->prog->region[s->prog->nregions++] = r;
		if (!fine)
			continue;
		sym->kind = SYM_REGION;
		sym->region = r;
		sym->of = of ? of->of : NULL;
	}
}

/* Fields of a structure or an argument */
static struct sema_struct *structure(struct sema *s, const struct syn_stmt *st, bool in_memory)
{
	struct sema_struct *made = pool_alloc(s->pool, sizeof(*made));
	unsigned total = 0;

	made->name = st->name.word;
	for (unsigned i = 0; i < st->nfields; i++) {
		const struct syn_field *syn = &st->field[i];
		struct sema_field f = {
			.name = strcmp(syn->name.word, "_") ? syn->name.word : NULL, .at = made->bytes};
		uint64_t count = 0;

		if (!sema_type(s, &syn->type, &f.type) ||
			(syn->count && !sema_number(s, syn->count, "the number of elements", 1,
					       PROGRAM_MAX_FIELDS, &count)))
			return NULL;
		if (in_memory && f.type.kind == AST_OFFSET) {
			sema_error(s, TYPE, syn->type.pos,
				"only an argument is an offset; in memory it is a number, be%u",
				8 * f.type.bytes);
			return NULL;
		}
		if (in_memory && !sema_has_order(s, syn->type.pos, &f.type))
			return NULL;
		for (unsigned k = 0; f.name && k < made->nfields; k++) {
			if (!made->field[k].name || strcmp(made->field[k].name, f.name))
				continue;
			sema_error(s, NAME, syn->name.pos, "\"%s\" has a field \"%s\" already", made->name,
				f.name);
			return NULL;
		}
		f.count = (uint32_t)count;
		made->bytes += f.type.bytes * (f.count ? f.count : 1);
		total += f.count ? f.count : 1;
		if (total > PROGRAM_MAX_FIELDS) {
			sema_error(s, LIMIT, syn->name.pos, "more than %d fields, elements counted",
				PROGRAM_MAX_FIELDS);
			return NULL;
		}
		pool_grow(s->pool, made->field, made->nfields);
		made->field[made->nfields++] = f;
	}
	return made;
}

static void declare_struct(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);
	const struct sema_struct *made = structure(s, st, true);

	if (!made)
		return;
	if (!sema_field_count(made)) {
		sema_error(s, NAME, st->name.pos, "\"%s\" has no field with a name", made->name);
		return;
	}
	sym->of = made;
	sym->kind = SYM_STRUCT;
}

/* "probe[1].at[2]" */
static const char *element_name(struct sema *s, const struct sym *sym, const char *suffix, uint32_t i,
	const struct sema_field *f, uint32_t k)
{
	const char *name = pool_printf(s->pool, "%s%s", sym->word, suffix);

	if (sym->count)
		name = pool_printf(s->pool, "%s[%u]", name, i);
	if (f)
		name = pool_printf(s->pool, "%s.%s", name, f->name);
	if (f && f->count)
		name = pool_printf(s->pool, "%s[%u]", name, k);
	return name;
}

static bool new_arg(
	struct sema *s, struct sym *sym, unsigned number, const char *name, const struct ast_type *type)
{
	struct ast_program *prog = s->prog;
	struct ast_arg *a = pool_alloc(s->pool, sizeof(*a));

	if (prog->nargs == PROGRAM_MAX_ARGS)
		return sema_error(s, LIMIT, sym->pos, "more than %d arguments, elements and fields counted",
			PROGRAM_MAX_ARGS);
	if (prog->arg_bytes + type->bytes > PROGRAM_MAX_ARG_BYTES)
		return sema_error(
			s, LIMIT, sym->pos, "the request is longer than %d bytes", PROGRAM_MAX_ARG_BYTES);
	*a = (struct ast_arg){.name = name, .index = prog->nargs, .type = *type, .pos = sym->pos};
	pool_grow(s->pool, prog->arg, prog->nargs);
	prog->arg[prog->nargs++] = a;
	prog->arg_bytes += type->bytes;
	pool_grow(s->pool, sym->arg, number);
	sym->arg[number] = a;
	return true;
}

static bool new_var(struct sema *s, struct sym *sym, unsigned number, const char *name,
	const struct ast_type *type, uint64_t init)
{
	struct ast_var *v = pool_alloc(s->pool, sizeof(*v));

	if (s->prog->nvars == PROGRAM_MAX_VARS)
		return sema_error(s, LIMIT, sym->pos,
			"more than %d variables, elements and iterations counted", PROGRAM_MAX_VARS);
	*v = (struct ast_var){.name = scope_unique(s, name, false),
		.each_iteration = s->endless,
		.index = s->prog->nvars,
		.type = *type,
		.init = init,
		.pos = sym->pos};
	pool_grow(s->pool, s->prog->var, s->prog->nvars);
	s->prog->var[s->prog->nvars++] = v;
	pool_grow(s->pool, sym->var, number);
	sym->var[number] = v;
	return true;
}

/* Every element and field of @sym, of @type if it has no fields, as an argument or a variable */
static bool spread(struct sema *s, struct sym *sym, bool arg, const struct ast_type *type, uint64_t init)
{
	const struct sema_field plain = {.type = *type}, *field = sym->of ? sym->of->field : &plain;
	unsigned nfields = sym->of ? sym->of->nfields : 1, number = 0;
	const char *suffix = arg ? "" : s->suffix;

	for (uint32_t i = 0; i < (sym->count ? sym->count : 1); i++) {
		for (const struct sema_field *f = field; f < field + nfields; f++) {
			if (sym->of && !f->name)
				continue;
			for (uint32_t k = 0; k < (f->count ? f->count : 1); k++) {
				const char *name = element_name(s, sym, suffix, i, sym->of ? f : NULL, k);

				if (!(arg ? new_arg(s, sym, number, name, &f->type)
					  : new_var(s, sym, number, name, &f->type, init)))
					return false;
				number++;
			}
		}
	}
	return true;
}

static bool count(struct sema *s, const struct syn_stmt *st, uint64_t limit, struct sym *sym)
{
	uint64_t n = 0;

	if (st->count && !sema_number(s, st->count, "the number of elements", 1, limit, &n))
		return false;
	sym->count = (uint32_t)n;
	return true;
}

static void declare_arg(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);
	struct ast_type type = {0};

	if (!count(s, st, PROGRAM_MAX_ARGS, sym))
		return;
	if (st->nfields) {
		sym->of = structure(s, st, false);
		if (!sym->of)
			return;
	} else if (!sema_type(s, &st->type, &type)) {
		return;
	}
	if (spread(s, sym, true, &type, 0))
		sym->kind = SYM_ARG;
}

static bool var_type(struct sema *s, const struct syn_type *syn, struct sym *sym, struct ast_type *type)
{
	const struct sym *st;

	if (syn->kind == SYN_TYPE_STRUCT) {
		st = scope_need_kind(s, syn->name, SYM_STRUCT, ", not a type");
		if (!st)
			return false;
		sym->of = st->of;
		return true;
	}
	if (!sema_type(s, syn, type))
		return false;
	if (type->kind == AST_OFFSET)
		return sema_error(s, TYPE, syn->pos,
			"only an argument is an offset; a variable is a number, be%u", 8 * type->bytes);
	return type->kind != AST_UINT || type->order != AST_ANY || type->bytes == 1 ||
	       sema_error(s, TYPE, syn->pos,
		       "a variable has a byte order: le%u to calculate with, be%u to be used in WQEs",
		       8 * type->bytes, 8 * type->bytes);
}

static void declare_var(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);
	struct ast_type type = {0};
	uint64_t init = 0;

	if (!count(s, st, PROGRAM_MAX_VARS, sym) || !var_type(s, &st->type, sym, &type))
		return;
	if (st->value && (sym->of || type.kind != AST_UINT)) {
		sema_error(
			s, TYPE, st->value->pos, "only a number can have a value here; others begin as zero");
		return;
	}
	if (st->value &&
		!sema_number(s, st->value, "the value", 0, UINT64_MAX >> (64 - 8 * type.bytes), &init))
		return;
	if (spread(s, sym, false, &type, init))
		sym->kind = SYM_VAR;
}

struct ast_var *sema_new_var(
	struct sema *s, const char *name, const struct ast_type *type, struct diag_pos pos)
{
	struct sym sym = {.word = name, .pos = pos};

	return spread(s, &sym, false, type, 0) ? sym.var[0] : NULL;
}

struct ast_var *sema_imply(struct sema *s, struct syn_name name, const struct ast_type *type)
{
	struct sym *sym = scope_declare(s, name, SYM_VAR);

	sym->implied = true;
	if (!spread(s, sym, false, type, 0)) {
		sym->kind = SYM_BAD;
		s->given_up = true;
		return s->prog->var[0];
	}
	pool_grow(s->pool, s->implied, s->nimplied);
	s->implied[s->nimplied++] = sym;
	return sym->var[0];
}

static void declare_queue(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);

	if (!count(s, st, PROGRAM_MAX_QUEUES, sym))
		return;
	for (uint32_t i = 0; i < (sym->count ? sym->count : 1); i++) {
		struct ast_queue *q = pool_alloc(s->pool, sizeof(*q));

		if (s->prog->nqueues == PROGRAM_MAX_QUEUES) {
			sema_error(s, LIMIT, st->pos, "more than %d queues", PROGRAM_MAX_QUEUES);
			return;
		}
		*q = (struct ast_queue){.name = element_name(s, sym, "", i, NULL, 0),
			.index = s->prog->nqueues,
			.pos = st->name.pos};
		pool_grow(s->pool, s->prog->queue, s->prog->nqueues);
		s->prog->queue[s->prog->nqueues++] = q;
		pool_grow(s->pool, sym->queue, i);
		sym->queue[i] = q;
	}
	sym->kind = SYM_QUEUE;
}

static void declare_payload(struct sema *s, const struct syn_stmt *st)
{
	struct sym *sym = scope_declare(s, st->name, SYM_OPEN);
	const struct sym *region = scope_need_kind(s, st->of, SYM_REGION, "; a payload is in a region");
	struct ast_payload *p = pool_alloc(s->pool, sizeof(*p));
	uint64_t max;

	if (!region || !sema_number(s, st->value, "the payload", 1, PROGRAM_MAX_PAYLOAD, &max))
		return;
	if (region->region->writable) {
		sema_error(s, PLACE, st->of.pos,
			"\"%s\" is writable; what a payload has brought there stays as it is", region->word);
		return;
	}
	if (s->prog->payload) {
		sema_error(s, LIMIT, st->pos, "a request has one payload, \"%s\"", s->prog->payload->name);
		return;
	}
	*p = (struct ast_payload){
		.name = st->name.word, .region = region->region, .max = (uint32_t)max, .pos = st->name.pos};
	s->prog->payload = p;
	sym->kind = SYM_PAYLOAD;
}

void sema_declare(struct sema *s, const struct syn_stmt *st, bool outermost)
{
	if (!outermost && st->kind != SYN_VAR && st->kind != SYN_CONST) {
		sema_error(s, SYNTAX, st->pos,
			"in a block only var and const can be declared; this belongs outside all blocks");
		if (st->name.word && st->kind != SYN_REPLY)
			scope_declare(s, st->name, SYM_BAD);
		return;
	}
	switch ((enum syn_kind)st->kind) {
	case SYN_SHAPE:
		s->prog->shape = st->shape;
		break;
	case SYN_ENDLESS:
		s->prog->endless = true;
		break;
	case SYN_PARAM:
		declare_param(s, st);
		break;
	case SYN_CONST:
		declare_const(s, st);
		break;
	case SYN_REGION:
		declare_region(s, st);
		break;
	case SYN_STRUCT:
		declare_struct(s, st);
		break;
	case SYN_ARG:
		declare_arg(s, st);
		break;
	case SYN_VAR:
		declare_var(s, st);
		break;
	case SYN_REPLY:
		sema_declare_reply(s, st);
		break;
	case SYN_PAYLOAD:
		declare_payload(s, st);
		break;
	default: /* SYN_QUEUE */
		declare_queue(s, st);
	}
	for (struct sym *sym = s->scope->syms; sym; sym = sym->next) {
		if (sym->kind == SYM_OPEN)
			sym->kind = SYM_BAD;
	}
}
