/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/parse.h"
#include "reddnd/program/front/pool.h"

#include <string.h>

static const struct {
	const char *word;
	uint8_t kind, calc;
} VERBS[PARSE_VERBS] = {{.word = "read", .kind = AST_READ}, {.word = "write", .kind = AST_WRITE},
	{.word = "write_imm", .kind = AST_WRITE_IMM}, {.word = "send", .kind = AST_SEND},
	{.word = "cas", .kind = AST_CAS}, {.word = "add", .kind = AST_ADD}, {.word = "nop", .kind = AST_NOP},
	{.word = "mov", .kind = AST_MOV}, {.word = "wait", .kind = AST_WAIT},
	{.word = "enable", .kind = AST_ENABLE}, {.word = "max", .kind = AST_CALC, .calc = AST_CALC_MAX},
	{.word = "min", .kind = AST_CALC, .calc = AST_CALC_MIN},
	{.word = "and", .kind = AST_CALC, .calc = AST_CALC_AND},
	{.word = "or", .kind = AST_CALC, .calc = AST_CALC_OR},
	{.word = "xor", .kind = AST_CALC, .calc = AST_CALC_XOR},
	{.word = "sub", .kind = AST_CALC, .calc = AST_CALC_SUB}};

bool parse_is_verb(const struct parser *p)
{
	for (size_t i = 0; i < PARSE_VERBS; i++) {
		if (parse_is_word(p, VERBS[i].word))
			return true;
	}
	return false;
}

unsigned parse_verb_words(const char **words)
{
	for (size_t i = 0; i < PARSE_VERBS; i++)
		words[i] = VERBS[i].word;
	return PARSE_VERBS;
}

static void arrow(struct parser *p)
{
	parse_need(p, LEX_ARROW, "\"->\"");
	parse_newlines(p);
}

static void add_into(struct parser *p, struct syn_verb *v, const struct syn_into *into)
{
	if (v->ninto == PROGRAM_MAX_LIST) {
		parse_error(p, LIMIT, p->at->pos, "more than %d items in a list", PROGRAM_MAX_LIST);
		return;
	}
	pool_grow(p->pool, v->into, v->ninto);
	v->into[v->ninto++] = *into;
}

static bool comma(struct parser *p)
{
	if (!parse_take(p, ','))
		return false;
	parse_newlines(p);
	return true;
}

static void parse_read(struct parser *p, struct syn_verb *v)
{
	pool_grow(p->pool, v->source, v->nsources);
	v->source[v->nsources++] = parse_expr(p);
	if (parse_take_word(p, "as")) {
		v->as = parse_name(p, "the name of a structure");
		parse_need(p, '{', "\"{\" and the fields to read");
		parse_newlines(p);
		do {
			struct syn_into into = {0};

			if (parse_is(p, '}') && v->ninto)
				break;
			into.field = parse_name(p, "the name of a field");
			into.field_index = parse_index(p);
			parse_newlines(p);
			arrow(p);
			into.to = parse_expr(p);
			add_into(p, v, &into);
			parse_newlines(p);
			if (!p->failed && !parse_is(p, '}') && !parse_is(p, ','))
				parse_expected(p, "\",\" or \"}\"");
		} while (!p->failed && comma(p));
		parse_need(p, '}', "\"}\"");
		return;
	}
	arrow(p);
	do {
		struct syn_into into = {0};

		into.to = parse_expr(p);
		add_into(p, v, &into);
	} while (!p->failed && comma(p));
}

/* What stands behind the number of a length */
static void length_unit(struct parser *p, struct syn_verb *v)
{
	if (!parse_take_word(p, "to")) {
		parse_need_word(p, "bytes");
		return;
	}
	v->least = v->bytes;
	v->bytes = NULL;
	v->max = parse_expr(p);
}

/* , 64 bytes , max 64K , 1 to 64K , imm 1 */
static void option(struct parser *p, struct syn_verb *v)
{
	struct diag_pos at = p->at->pos;
	struct syn_expr **option;

	if (parse_take_word(p, "max")) {
		option = &v->max;
	} else if (parse_is_word(p, "imm")) {
		if (v->kind != AST_WRITE_IMM)
			parse_error(p, SYNTAX, at, "only write_imm has an immediate");
		parse_take_word(p, "imm");
		option = &v->imm;
	} else {
		option = &v->bytes;
	}
	if (*option || (option != &v->imm && (v->bytes || v->max)))
		parse_error(p, SYNTAX, at, "%s was given before",
			option == &v->imm ? "the immediate" : "the length");
	*option = parse_expr(p);
	if (option == &v->bytes)
		length_unit(p, v);
}

static void parse_write(struct parser *p, struct syn_verb *v)
{
	do {
		if (v->nsources == PROGRAM_MAX_LIST) {
			parse_error(p, LIMIT, p->at->pos, "more than %d items in a list", PROGRAM_MAX_LIST);
			return;
		}
		if (v->kind == AST_SEND && v->nsources && parse_is_word(p, "max")) {
			option(p, v);
			return;
		}
		pool_grow(p->pool, v->source, v->nsources);
		v->source[v->nsources++] = parse_expr(p);
		if (v->kind == AST_SEND && v->nsources > 1 &&
			(parse_is_word(p, "bytes") || parse_is_word(p, "to"))) {
			v->bytes = v->source[--v->nsources]; /* it was the length, and there is no arrow
								before it */
			length_unit(p, v);
			return;
		}
	} while (!p->failed && comma(p) && v->kind != AST_MOV);
	if (v->kind != AST_SEND) {
		struct syn_into into = {0};

		arrow(p);
		into.to = parse_expr(p);
		add_into(p, v, &into);
	}
	while (v->kind != AST_MOV && !p->failed && comma(p))
		option(p, v);
}

static void was(struct parser *p, struct syn_verb *v)
{
	parse_need_word(p, "was");
	arrow(p);
	v->was = parse_expr(p);
}

static void parse_cas(struct parser *p, struct syn_verb *v)
{
	pool_grow(p->pool, v->source, v->nsources);
	v->source[v->nsources++] = parse_expr(p);
	parse_need(p, ':', "\":\" and the value expected there");
	v->old = parse_expr(p);
	arrow(p);
	v->swap = parse_expr(p);
	if (parse_take_word(p, "in"))
		v->located = parse_name(p, "the name of a region");
	while (!p->failed && comma(p)) {
		if (!v->mask && parse_take_word(p, "mask"))
			v->mask = parse_expr(p);
		else if (!v->was && parse_is_word(p, "was"))
			was(p, v);
		else
			parse_expected(p, "\"mask\" or \"was ->\"");
	}
}

/* a, b -> place, without the first @operands of the two */
static void parse_calc(struct parser *p, struct syn_verb *v, unsigned operands)
{
	struct syn_into into = {0};

	for (; !p->failed && operands < 2; operands++) {
		pool_grow(p->pool, v->source, v->nsources);
		v->source[v->nsources++] = parse_expr(p);
		if (operands == 0) {
			parse_need(p, ',', "\",\" and the second operand");
			parse_newlines(p);
		}
	}
	arrow(p);
	into.to = parse_expr(p);
	add_into(p, v, &into);
}

/* To a word, or of two numbers */
static void parse_add(struct parser *p, struct syn_verb *v)
{
	pool_grow(p->pool, v->source, v->nsources);
	v->source[v->nsources++] = parse_expr(p);
	if (comma(p)) {
		v->kind = AST_CALC;
		v->calc = AST_CALC_ADD;
		parse_calc(p, v, 1);
		return;
	}
	parse_need_word(p, "by");
	v->minus = parse_take(p, '-');
	v->by = parse_expr(p);
	while (!p->failed && comma(p)) {
		if (!v->fields && parse_take_word(p, "fields"))
			v->fields = parse_expr(p);
		else if (!v->was && parse_is_word(p, "was"))
			was(p, v);
		else
			parse_expected(p, "\"fields\" or \"was ->\"");
	}
}

static void parse_target(struct parser *p, struct syn_verb *v)
{
	if (v->kind == AST_WAIT && parse_take_word(p, "request"))
		return;
	v->target = parse_name(p, v->kind == AST_WAIT ? "a label, or \"request\"" : "a label");
}

void parse_verb(struct parser *p, struct syn_verb *v)
{
	const char *word = p->at->word;

	v->pos = p->at->pos;
	for (size_t i = 0; i < PARSE_VERBS; i++) {
		if (strcmp(VERBS[i].word, word))
			continue;
		v->kind = VERBS[i].kind;
		v->calc = VERBS[i].calc;
	}
	if (p->failed)
		return;
	p->at++;
	switch ((enum ast_verb_kind)v->kind) {
	case AST_READ:
		parse_read(p, v);
		break;
	case AST_WRITE:
	case AST_WRITE_IMM:
	case AST_SEND:
	case AST_MOV:
		parse_write(p, v);
		break;
	case AST_CAS:
		parse_cas(p, v);
		break;
	case AST_ADD:
		parse_add(p, v);
		break;
	case AST_CALC:
		parse_calc(p, v, 0);
		break;
	case AST_WAIT:
	case AST_ENABLE:
		parse_target(p, v);
		break;
	case AST_NOP:
		break;
	}
}
