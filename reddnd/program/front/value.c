/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include "reddnd/program/front/lex.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum sema_constness apply(
	struct sema *s, const struct syn_expr *e, uint64_t a, uint64_t b, uint64_t *value)
{
	bool wrong = false;

	switch (e->op) {
	case '+':
		wrong = __builtin_add_overflow(a, b, value);
		break;
	case '-':
		if (b > a) {
			sema_error(s, VALUE, e->pos,
				"%" PRIu64 " - %" PRIu64 " is below zero; numbers are unsigned", a, b);
			return SEMA_ERROR;
		}
		*value = a - b;
		break;
	case '*':
		wrong = __builtin_mul_overflow(a, b, value);
		break;
	case '/':
	case '%':
		if (!b) {
			sema_error(s, VALUE, e->pos, "a division by zero");
			return SEMA_ERROR;
		}
		*value = e->op == '/' ? a / b : a % b;
		break;
	case '&':
		*value = a & b;
		break;
	case '|':
		*value = a | b;
		break;
	case LEX_SHL:
		wrong = a && (b > 63 || a << b >> b != a);
		*value = b > 63 ? 0 : a << b;
		break;
	default: /* LEX_SHR */
		*value = b > 63 ? 0 : a >> b;
	}
	if (!wrong)
		return SEMA_CONST;
	sema_error(s, VALUE, e->pos, "the value does not fit into 64 bits");
	return SEMA_ERROR;
}

enum sema_constness sema_eval(struct sema *s, const struct syn_expr *e, uint64_t *value)
{
	enum sema_constness left, right;
	uint64_t a = 0, b = 0;
	const struct sym *sym;

	switch ((enum syn_expr_kind)e->kind) {
	case SYN_NUMBER:
		*value = e->number;
		return SEMA_CONST;
	case SYN_REF:
		sym = scope_need(s, e->name);
		if (!sym)
			return SEMA_ERROR;
		if (sym->kind != SYM_NUMBER)
			return SEMA_RUNTIME;
		if (e->index || e->field.word) {
			sema_error(s, TYPE, e->pos, "\"%s\" is a constant: it has no elements or fields",
				sym->word);
			return SEMA_ERROR;
		}
		*value = sym->number;
		return SEMA_CONST;
	case SYN_BINARY:
		left = sema_eval(s, e->left, &a);
		right = left == SEMA_ERROR ? left : sema_eval(s, e->right, &b);
		if (left == SEMA_ERROR || right == SEMA_ERROR)
			return SEMA_ERROR;
		if (left == SEMA_RUNTIME || right == SEMA_RUNTIME)
			return SEMA_RUNTIME;
		return apply(s, e, a, b, value);
	case SYN_NOT:
		left = sema_eval(s, e->left, &a);
		*value = ~a;
		return left;
	case SYN_SIZEOF:
		sym = scope_need_kind(s, e->name, SYM_STRUCT, "; sizeof takes a structure");
		if (!sym)
			return SEMA_ERROR;
		*value = sym->of->bytes;
		return SEMA_CONST;
	case SYN_SWAB:
	case SYN_AT:
	case SYN_AS:
	case SYN_SLOT:
		break;
	}
	return SEMA_RUNTIME;
}

bool sema_number(
	struct sema *s, const struct syn_expr *e, const char *what, uint64_t lo, uint64_t hi, uint64_t *value)
{
	enum sema_constness c = sema_eval(s, e, value);

	if (c == SEMA_ERROR)
		return false;
	if (c == SEMA_RUNTIME)
		return sema_error(
			s, VALUE, e->pos, "%s must be a constant, made of numbers, params and consts", what);
	if (*value < lo || *value > hi)
		return sema_error(s, VALUE, e->pos, "%s is %" PRIu64 "; it may be %" PRIu64 " to %" PRIu64,
			what, *value, lo, hi);
	return true;
}

bool sema_index(struct sema *s, const struct syn_expr *e, struct diag_pos pos, const char *word,
	uint32_t count, uint32_t *index)
{
	uint64_t value = 0;

	*index = 0;
	if (!count)
		return !e || sema_error(s, TYPE, e->pos, "\"%s\" is not an array", word);
	if (!e)
		return sema_error(
			s, TYPE, pos, "\"%s\" is an array; say which element, [0] to [%u]", word, count - 1);
	if (!sema_number(s, e, "the index", 0, count - 1, &value))
		return false;
	*index = (uint32_t)value;
	return true;
}

bool sema_type(struct sema *s, const struct syn_type *t, struct ast_type *type)
{
	const struct sym *sym;
	uint64_t bytes;

	*type = (struct ast_type){.kind = AST_UINT, .order = t->order, .bytes = t->bits / 8u};
	if (t->kind == SYN_TYPE_BYTES) {
		if (!sema_number(s, t->size, "the number of bytes", 1, PROGRAM_MAX_BYTES, &bytes))
			return false;
		*type = (struct ast_type){.kind = AST_BYTES, .order = AST_ANY, .bytes = (uint32_t)bytes};
	} else if (t->kind == SYN_TYPE_OFFSET) {
		if (!sema_number(s, t->size, "the number of bytes of an offset", 1, 7, &bytes))
			return false;
		sym = scope_need_kind(s, t->name, SYM_REGION, "; an offset is in a region");
		if (!sym)
			return false;
		*type = (struct ast_type){
			.kind = AST_OFFSET, .order = AST_BE, .bytes = (uint32_t)bytes, .window = sym->region};
	}
	return true;
}

bool sema_has_order(struct sema *s, struct diag_pos pos, const struct ast_type *t)
{
	return t->kind != AST_UINT || t->order != AST_ANY || t->bytes == 1 ||
	       sema_error(s, TYPE, pos, "in memory a number has a byte order: be%u or le%u", 8 * t->bytes,
		       8 * t->bytes);
}

const char *sema_type_name(const struct ast_type *t)
{
	static _Thread_local char names[4][PROGRAM_MAX_NAME + 24];
	static _Thread_local unsigned next;
	char *name = names[next++ % 4];
	const char *order = t->order == AST_ANY || t->bytes == 1 ? "u" : t->order == AST_BE ? "be" : "le";

	switch ((enum ast_type_kind)t->kind) {
	case AST_NONE:
		return "of no type";
	case AST_UINT:
		snprintf(name, sizeof(names[0]), "%s%u", order, 8 * t->bytes);
		break;
	case AST_BYTES:
		snprintf(name, sizeof(names[0]), "bytes %u", t->bytes);
		break;
	case AST_OFFSET:
		snprintf(name, sizeof(names[0]), "offset(%u) in %s", t->bytes, t->window->name);
		break;
	}
	return name;
}

bool sema_same_type(const struct ast_type *a, const struct ast_type *b)
{
	return a->kind == b->kind && a->bytes == b->bytes &&
	       (a->order == b->order || a->order == AST_ANY || b->order == AST_ANY) && a->window == b->window;
}

bool sema_fits(const struct ast_type *t, uint64_t value)
{
	return t->bytes >= 8 || value >> (8 * t->bytes) == 0;
}

const struct sema_field *sema_field(struct sema *s, const struct sema_struct *st, struct syn_name name,
	const struct syn_expr *e, uint32_t *index)
{
	const char *words[PROGRAM_MAX_FIELDS];
	char hint[TEXT_HINT];
	unsigned n = 0;

	for (const struct sema_field *f = st->field; f < st->field + st->nfields; f++) {
		if (!f->name)
			continue;
		if (!strcmp(f->name, name.word))
			return sema_index(s, e, name.pos, name.word, f->count, index) ? f : NULL;
		words[n++] = f->name;
	}
	sema_error(s, NAME, name.pos, "\"%s\" has no field \"%s\"%s", st->name, name.word,
		text_hint(hint, name.word, words, n, ""));
	return NULL;
}

static unsigned elements(const struct sema_field *f)
{
	return !f->name ? 0 : f->count ? f->count : 1;
}

unsigned sema_field_number(const struct sema_struct *st, const struct sema_field *f, uint32_t index)
{
	unsigned n = index;

	for (const struct sema_field *before = st->field; before < f; before++)
		n += elements(before);
	return n;
}

unsigned sema_field_count(const struct sema_struct *st)
{
	return sema_field_number(st, st->field + st->nfields, 0);
}
