/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/parse.h"
#include "reddnd/program/front/pool.h"
#include "util/array.h"

#include "util/text.h"

#include <string.h>

static void parse_block(struct parser *p, struct syn_block *b);

/* name[count] : type, ... } */
/* A comma, a new line, or both: another field comes */
static bool separator(struct parser *p)
{
	bool line = parse_is(p, LEX_NEWLINE);

	parse_newlines(p);
	return parse_take(p, ',') || (line && !parse_is(p, '}'));
}

static void fields(struct parser *p, struct syn_stmt *s, bool skips)
{
	parse_newlines(p);
	do {
		struct syn_field f = {0};

		parse_newlines(p);
		if (parse_is(p, '}') && s->nfields)
			break;
		if (!skips && parse_is_word(p, "_"))
			parse_error(p, SYNTAX, p->at->pos, "a request has no bytes to skip; leave \"_\" out");
		if (s->nfields == PROGRAM_MAX_LIST) {
			parse_error(p, LIMIT, p->at->pos, "more than %d items in a list", PROGRAM_MAX_LIST);
			return;
		}
		f.name = parse_name(p, "the name of a field");
		f.count = parse_index(p);
		parse_newlines(p);
		parse_need(p, ':', "\":\" and a type");
		parse_newlines(p);
		f.type = parse_type(p, false);
		pool_grow(p->pool, s->field, s->nfields);
		s->field[s->nfields++] = f;
		if (!p->failed && !parse_is(p, ',') && !parse_is(p, '}') && !parse_is(p, LEX_NEWLINE))
			parse_expected(p, "\",\" or \"}\"");
	} while (!p->failed && separator(p));
	parse_need(p, '}', "\"}\"");
}

const char *program_shape_name(enum program_shape shape)
{
	static const char *const names[] = {[PROGRAM_OPAQUE] = "opaque",
		[PROGRAM_TABLE] = "table",
		[PROGRAM_PUT] = "put",
		[PROGRAM_EXISTS] = "exists",
		[PROGRAM_INTO] = "into"};

	return names[shape];
}

static void shape(struct parser *p, struct syn_stmt *s)
{
	for (s->shape = PROGRAM_OPAQUE; s->shape <= PROGRAM_INTO; s->shape++)
		if (parse_take_word(p, program_shape_name(s->shape)))
			return;
	parse_expected(p, "\"table\", \"into\", \"exists\", \"put\" or \"opaque\"");
}

static void param(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the param");
	parse_need(p, '=', "\"=\" and its default");
	s->value = parse_expr(p);
	if (!parse_take_word(p, "from"))
		parse_expected(p, "the range (\"from 1 to 8\") that the catalog may choose from");
	s->lo = parse_expr(p);
	parse_need_word(p, "to");
	s->hi = parse_expr(p);
}

static void constant(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the constant");
	parse_need(p, '=', "\"=\" and its value");
	s->value = parse_expr(p);
}

static void region(struct parser *p, struct syn_stmt *s)
{
	do {
		parse_newlines(p);
		if (s->nnames == PROGRAM_MAX_LIST) {
			parse_error(p, LIMIT, p->at->pos, "more than %d items in a list", PROGRAM_MAX_LIST);
			return;
		}
		pool_grow(p->pool, s->names, s->nnames);
		s->names[s->nnames++] = parse_new_name(p, "the name of a region");
	} while (parse_take(p, ','));
	s->writable = parse_take_word(p, "writable");
	s->steered = s->writable && parse_take_word(p, "steered");
	if (parse_take_word(p, "of"))
		s->of = parse_name(p, "the name of a structure");
	if (parse_take_word(p, "size"))
		s->value = parse_expr(p);
	if (!p->failed && !parse_is(p, LEX_NEWLINE))
		parse_expected(p, "\",\", \"writable\", \"steered\", \"of\" or \"size\", in that order, or "
				  "the end of the line");
}

static void structure(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the structure");
	if (parse_need(p, '{', "\"{\" and fields"))
		fields(p, s, true);
}

static void argument(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the argument");
	s->count = parse_index(p);
	if (parse_take(p, '{')) {
		fields(p, s, false);
		return;
	}
	parse_need(p, ':', "\":\" and a type, or \"{\" and fields,");
	s->type = parse_type(p, false);
}

static void variable(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the variable");
	s->count = parse_index(p);
	parse_need(p, ':', "\":\" and a type");
	s->type = parse_type(p, true);
	if (parse_take(p, '='))
		s->value = parse_expr(p);
}

static void queue(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the queue");
	s->count = parse_index(p);
}

static void reply(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of a field of the reply");
	parse_need(p, '@', "\"@\" and its offset in the slot");
	s->value = parse_expr(p);
	parse_need(p, ':', "\":\" and a type");
	s->type = parse_type(p, false);
}

static void payload(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of the payload");
	parse_need(p, ':', "\":\" and \"max BYTES in REGION\"");
	parse_need_word(p, "max");
	s->value = parse_expr(p);
	parse_need_word(p, "in");
	s->of = parse_name(p, "the name of a region");
}

static void for_loop(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_new_name(p, "the name of what counts");
	parse_need_word(p, "in");
	s->lo = parse_expr(p);
	parse_need(p, LEX_RANGE, "\"..\"");
	s->hi = parse_expr(p);
}

static void while_loop(struct parser *p, struct syn_stmt *s)
{
	s->cond = parse_cond(p);
	if (parse_take_word(p, "max"))
		s->count = parse_expr(p);
}

static void loop(struct parser *p, struct syn_stmt *s)
{
	if (parse_take_word(p, "max"))
		s->count = parse_expr(p);
}

static void condition(struct parser *p, struct syn_stmt *s)
{
	s->cond = parse_cond(p);
}

static void on_queue(struct parser *p, struct syn_stmt *s)
{
	s->name = parse_name(p, "the name of a queue");
	s->count = parse_index(p);
}

static void nothing(struct parser *p, struct syn_stmt *s)
{
	(void)p;
	(void)s;
}

/* How each kind begins; those with a block go on with it */
static const struct {
	const char *word;
	uint8_t kind;
	bool block;
	void (*head)(struct parser *p, struct syn_stmt *s);
} KINDS[] = {
	{"shape", SYN_SHAPE, false, shape},
	{"endless", SYN_ENDLESS, false, nothing},
	{"param", SYN_PARAM, false, param},
	{"const", SYN_CONST, false, constant},
	{"region", SYN_REGION, false, region},
	{"struct", SYN_STRUCT, false, structure},
	{"arg", SYN_ARG, false, argument},
	{"var", SYN_VAR, false, variable},
	{"queue", SYN_QUEUE, false, queue},
	{"reply", SYN_REPLY, false, reply},
	{"payload", SYN_PAYLOAD, false, payload},
	{"for", SYN_FOR, true, for_loop},
	{"while", SYN_WHILE, true, while_loop},
	{"loop", SYN_LOOP, true, loop},
	{"if", SYN_IF, true, condition},
	{"on", SYN_ON, true, on_queue},
	{"break", SYN_BREAK, false, nothing},
};

/* Goes on to the end of a statement that was reported, or to the "{" of its block */
static bool skip(struct parser *p, bool block)
{
	unsigned open = 0;

	p->failed = false;
	for (;; p->at++) {
		if (parse_is(p, LEX_END))
			return false;
		if (!open && block && parse_is(p, '{'))
			return true;
		if (!open && (parse_is(p, LEX_NEWLINE) || parse_is(p, '}')))
			return false;
		if (parse_is(p, '{'))
			open++;
		else if (parse_is(p, '}'))
			open--;
	}
}

static void unknown_statement(struct parser *p)
{
	const char *words[COUNT(KINDS) + PARSE_VERBS];
	char hint[TEXT_HINT];
	unsigned n = parse_verb_words(words);

	for (size_t k = 0; k < COUNT(KINDS); k++)
		words[n++] = KINDS[k].word;
	parse_error(p, SYNTAX, p->at->pos, "%s where a statement should begin%s", lex_name(p->at),
		text_hint(hint, p->at->word, words, n, ""));
}

static void verb(struct parser *p, struct syn_stmt *s)
{
	struct syn_verb *v = pool_alloc(p->pool, sizeof(*v));

	s->kind = SYN_VERB;
	s->verb = v;
	if (p->at[0].kind == LEX_WORD && p->at[1].kind == ':') {
		v->label = parse_new_name(p, "a label");
		parse_take(p, ':');
		parse_newlines(p);
	}
	v->fence = parse_take_word(p, "fence");
	v->ahead = parse_take_word(p, "ahead");
	if (v->ahead && parse_take(p, '(')) {
		v->ahead_if = parse_expr(p);
		parse_need(p, ')', "\")\"");
	}
	if (p->failed)
		return;
	if (v->ahead && !parse_is_word(p, "read") && !parse_is_word(p, "write_imm") &&
		!parse_is_word(p, "send")) {
		parse_expected(p, "a verb that can be ahead (read, write_imm or send)");
		return;
	}
	if (parse_is_verb(p)) {
		parse_verb(p, v);
		return;
	}
	if (v->label.word || v->fence || v->ahead)
		parse_expected(p, "a verb (read, write, write_imm, send, cas, add, nop, mov, max, min, and, "
				  "or, xor, sub)");
	else if (parse_is(p, LEX_WORD) && p->at[1].kind == '=')
		parse_error(p, SYNTAX, p->at->pos, "there is no assignment; write \"mov VALUE -> %s\"",
			p->at->word);
	else if (parse_is(p, LEX_WORD))
		unknown_statement(p);
	else
		parse_expected(p, "a statement");
}

/* After "else" */
static void otherwise(struct parser *p, struct syn_stmt *s);

static void statement(struct parser *p, struct syn_stmt *s)
{
	bool block = false;

	s->pos = p->at->pos;
	if (parse_is_word(p, "program") && p->at[1].kind != ':') {
		parse_error(p, SYNTAX, s->pos, "a file is one program; its name was given before");
	} else if (parse_is_word(p, "else")) {
		parse_error(p, SYNTAX, s->pos,
			"\"else\" without an if or a loop; it follows the \"}\" of that on the same line");
		block = true;
		s->kind = SYN_IF;
		p->at++;
	} else {
		size_t k = 0;

		while (k < COUNT(KINDS) && !(parse_is_word(p, KINDS[k].word) && p->at[1].kind != ':'))
			k++;
		if (k < COUNT(KINDS)) {
			p->at++;
			s->kind = KINDS[k].kind;
			block = KINDS[k].block;
			KINDS[k].head(p, s);
		} else {
			verb(p, s);
		}
	}
	if (block && !p->failed && parse_is(p, LEX_NEWLINE) && p->at[1].kind == '{') {
		diag_error(p->d, SYNTAX, p->at[1].pos, "\"{\" belongs on the line before");
		p->at++;
	}
	if (block && !p->failed && !parse_is(p, '{'))
		parse_expected(p, "\"{\"");
	if (p->failed && !skip(p, block))
		return;
	if (block) {
		parse_block(p, &s->body);
		if (s->kind != SYN_ON && parse_take_word(p, "else"))
			otherwise(p, s);
	}
	if (!p->failed && !parse_is(p, LEX_NEWLINE) && !parse_is(p, '}') && !parse_is(p, LEX_END))
		parse_expected(p, "the end of the line");
	if (p->failed)
		skip(p, false);
}

static void otherwise(struct parser *p, struct syn_stmt *s)
{
	if (!parse_is_word(p, "if")) {
		if (!parse_is(p, '{'))
			parse_expected(p, "\"{\" or \"if\"");
		if (!p->failed || skip(p, true))
			parse_block(p, &s->otherwise);
		return;
	}
	s->otherwise.stmt = pool_alloc(p->pool, sizeof(*s->otherwise.stmt));
	s->otherwise.n = 1;
	if (parse_enter(p)) {
		statement(p, s->otherwise.stmt);
		p->depth--;
	}
}

static void statements(struct parser *p, struct syn_block *b)
{
	for (;;) {
		parse_newlines(p);
		if (parse_is(p, LEX_END) || parse_is(p, '}') || diag_is_full(p->d))
			return;
		if (pool_is_full(p->pool)) {
			diag_error(p->d, LIMIT, p->at->pos, "the program is too large");
			while (!parse_is(p, LEX_END))
				p->at++;
			return;
		}
		pool_grow(p->pool, b->stmt, b->n);
		b->stmt[b->n] = (struct syn_stmt){0};
		statement(p, &b->stmt[b->n]);
		b->n++;
	}
}

/* From "{" through "}" */
static void parse_block(struct parser *p, struct syn_block *b)
{
	struct diag_pos open = p->at->pos;

	if (!parse_enter(p)) {
		skip(p, false);
		return;
	}
	p->at++;
	statements(p, b);
	p->depth--;
	if (parse_take(p, '}') || diag_is_full(p->d))
		return;
	diag_error(p->d, SYNTAX, open, "\"{\" without its \"}\"");
	p->failed = false;
}

struct syn_program *parse(struct pool *pool, struct diag *d, const struct lex_token *tokens)
{
	struct parser p = {.pool = pool, .d = d, .at = tokens};
	struct syn_program *prog = pool_alloc(pool, sizeof(*prog));

	parse_newlines(&p);
	if (parse_take_word(&p, "program")) {
		prog->name = parse_new_name(&p, "the name of the program");
		if (!p.failed && !parse_is(&p, LEX_NEWLINE))
			parse_expected(&p, "the end of the line");
	} else if (!parse_is(&p, LEX_BAD)) {
		parse_error(&p, SYNTAX, p.at->pos, "a program begins with \"program NAME\"");
		p.failed = false;
	}
	if (p.failed)
		skip(&p, false);
	for (;;) {
		statements(&p, &prog->body);
		if (!parse_is(&p, '}') || diag_is_full(d))
			return prog;
		diag_error(d, SYNTAX, p.at->pos, "\"}\" without its \"{\"");
		p.at++;
	}
}
