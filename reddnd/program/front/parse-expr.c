/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/parse.h"
#include "reddnd/program/front/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parse_expected(struct parser *p, const char *what)
{
	if (parse_is(p, LEX_BAD)) /* the lexer has reported it */
		p->failed = true;
	else
		parse_error(p, SYNTAX, p->at->pos, "%s where %s should be", lex_name(p->at), what);
}

bool parse_is(const struct parser *p, int kind)
{
	return p->at->kind == kind;
}

bool parse_is_word(const struct parser *p, const char *word)
{
	return p->at->kind == LEX_WORD && !strcmp(p->at->word, word);
}

bool parse_take(struct parser *p, int kind)
{
	if (p->failed || !parse_is(p, kind))
		return false;
	p->at++;
	return true;
}

bool parse_take_word(struct parser *p, const char *word)
{
	return parse_is_word(p, word) && parse_take(p, LEX_WORD);
}

bool parse_need(struct parser *p, int kind, const char *what)
{
	if (parse_take(p, kind))
		return true;
	parse_expected(p, what);
	return false;
}

bool parse_need_word(struct parser *p, const char *word)
{
	char what[40];

	if (parse_take_word(p, word))
		return true;
	snprintf(what, sizeof(what), "\"%s\"", word);
	parse_expected(p, what);
	return false;
}

void parse_newlines(struct parser *p)
{
	while (parse_take(p, LEX_NEWLINE))
		;
}

bool parse_enter(struct parser *p)
{
	if (p->depth >= PROGRAM_MAX_NEST) {
		parse_error(
			p, LIMIT, p->at->pos, "nested too deeply; %d levels are the limit", PROGRAM_MAX_NEST);
		return false;
	}
	p->depth++;
	return true;
}

static const char *const RESERVED[] = {"program", "shape", "endless", "param", "const", "region", "struct",
	"arg", "var", "queue", "reply", "for", "while", "loop", "break", "if", "else", "on", "fence", "ahead",
	"wait", "enable", "read", "write", "write_imm", "send", "cas", "add", "nop", "mov", "min", "max",
	"and", "or", "xor", "sub", "slot", "request", "swab", "sizeof", "bytes", "offset", "as", "in"};

/* u8, be24: letters, then bits */
static bool number_type(const char *word, struct syn_type *type)
{
	const char *digits = word + (!strncmp(word, "be", 2) || !strncmp(word, "le", 2) ? 2
					    : *word == 'u'                              ? 1
											: 0);

	if (digits == word || !*digits || strlen(digits) > 4 || digits[strspn(digits, "0123456789")])
		return false;
	type->kind = SYN_TYPE_NUMBER;
	type->order = *word == 'b' ? AST_BE : *word == 'l' ? AST_LE : AST_ANY;
	type->bits = (uint8_t)(atoi(digits) % 8 || *digits == '0' || atoi(digits) > 64 ? 0 : atoi(digits));
	return true;
}

static bool parse_is_reserved(const char *word)
{
	struct syn_type type;

	for (size_t i = 0; i < sizeof(RESERVED) / sizeof(RESERVED[0]); i++) {
		if (!strcmp(word, RESERVED[i]))
			return true;
	}
	return number_type(word, &type) && type.bits; /* there is no u1 */
}

struct syn_name parse_name(struct parser *p, const char *what)
{
	struct syn_name n = {p->at->word, p->at->pos};

	parse_need(p, LEX_WORD, what);
	return n;
}

struct syn_name parse_new_name(struct parser *p, const char *what)
{
	if (parse_is(p, LEX_WORD) && parse_is_reserved(p->at->word))
		parse_error(p, SYNTAX, p->at->pos, "\"%s\" is a word of the language; choose another name",
			p->at->word);
	if (parse_is_word(p, "_"))
		parse_error(p, SYNTAX, p->at->pos, "\"_\" is no name: it stands for what is skipped");
	return parse_name(p, what);
}

static bool parse_is_type(const struct parser *p)
{
	struct syn_type ignored;

	return p->at->kind == LEX_WORD && (number_type(p->at->word, &ignored) || parse_is_word(p, "bytes") ||
						  parse_is_word(p, "offset"));
}

struct syn_type parse_type(struct parser *p, bool structs)
{
	struct syn_type t = {.pos = p->at->pos};

	if (p->failed)
		return t;
	if (parse_is(p, LEX_WORD) && number_type(p->at->word, &t)) {
		if (!t.bits)
			parse_error(p, SYNTAX, t.pos,
				"there is no type \"%s\"; numbers have 8, 16, 24, ... 64 bits", p->at->word);
		p->at++;
	} else if (parse_take_word(p, "bytes")) {
		t.kind = SYN_TYPE_BYTES;
		t.size = parse_expr(p);
	} else if (parse_take_word(p, "offset")) {
		t.kind = SYN_TYPE_OFFSET;
		parse_need(p, '(', "\"(\" and the number of bytes of the offset");
		t.size = parse_expr(p);
		parse_need(p, ')', "\")\"");
		parse_need_word(p, "in");
		t.name = parse_name(p, "the name of a region");
	} else if (structs && parse_is(p, LEX_WORD) && !parse_is_reserved(p->at->word)) {
		t.kind = SYN_TYPE_STRUCT;
		t.name = parse_name(p, "a type");
	} else if (parse_is(p, LEX_WORD)) {
		parse_error(p, SYNTAX, t.pos,
			"there is no type \"%s\"; the types are u8, be16, le16, ... be64, le64, bytes N%s",
			p->at->word,
			structs ? ", offset(N) in REGION and structures" : " and offset(N) in REGION");
	} else {
		parse_expected(p, "a type");
	}
	return t;
}

static struct syn_expr *make(struct parser *p, uint8_t kind)
{
	struct syn_expr *e = pool_alloc(p->pool, sizeof(*e));

	e->kind = kind;
	e->pos = p->at->pos;
	return e;
}

struct syn_expr *parse_index(struct parser *p)
{
	struct syn_expr *e;

	if (!parse_take(p, '['))
		return NULL;
	parse_newlines(p);
	e = parse_expr(p);
	parse_newlines(p);
	parse_need(p, ']', "\"]\"");
	return e;
}

/* From the token where @e begins to the one before the current */
static void span(const struct parser *p, struct syn_expr *e, struct diag_pos from)
{
	const struct diag_pos *last = &p->at[-1].pos;

	e->pos = from;
	if (last->line == from.line)
		e->pos.len = last->col + last->len - from.col;
}

/* ")" of the "(" at @open */
static void close_parenthesis(struct parser *p, struct diag_pos open)
{
	parse_newlines(p);
	if (!p->failed && !parse_is(p, ')')) {
		parse_expected(p, "\")\"");
		diag_note(p->d, open, "the \"(\" is here");
	}
	parse_take(p, ')');
}

static struct syn_expr *binary(struct parser *p, unsigned level);

static struct syn_expr *primary(struct parser *p)
{
	struct syn_expr *e = make(p, SYN_NUMBER);
	struct diag_pos from = e->pos;

	if (p->failed)
		return e;
	if (parse_is(p, LEX_NUMBER)) {
		e->number = p->at->number;
		p->at++;
	} else if (parse_take(p, '(')) {
		if (!parse_enter(p))
			return e;
		parse_newlines(p);
		e = binary(p, 0);
		close_parenthesis(p, from);
		p->depth--;
	} else if (parse_take(p, '~')) {
		if (!parse_enter(p))
			return e;
		e->kind = SYN_NOT;
		e->left = primary(p);
		p->depth--;
	} else if (parse_take_word(p, "swab") || parse_take_word(p, "sizeof")) {
		bool swab = !strcmp(p->at[-1].word, "swab");

		parse_need(p, '(', "\"(\"");
		e->kind = swab ? SYN_SWAB : SYN_SIZEOF;
		if (!parse_enter(p))
			return e;
		if (swab)
			e->left = parse_expr(p);
		else
			e->name = parse_name(p, "the name of a structure");
		p->depth--;
		parse_need(p, ')', "\")\"");
	} else if (parse_take_word(p, "slot")) {
		e->kind = SYN_SLOT;
	} else if (parse_is(p, '-')) {
		parse_error(p, SYNTAX, from, "numbers are unsigned; only \"add ... by -x\" takes a minus");
	} else if (parse_is(p, LEX_WORD) && !parse_is_reserved(p->at->word)) {
		e->kind = SYN_REF;
		e->name = parse_name(p, "a name");
		e->index = parse_index(p);
		if (parse_take(p, '.')) {
			e->field = parse_name(p, "the name of a field");
			e->field_index = parse_index(p);
			if (parse_take(p, '.')) { /* label.local[n].addr */
				e->right = make(p, SYN_REF);
				e->right->name = parse_name(p, "the name of a field");
			}
		}
	} else if (parse_is(p, LEX_WORD)) {
		parse_error(p, SYNTAX, from,
			"\"%s\" is a word of the language, where a value or place should be", p->at->word);
	} else {
		parse_expected(p, "a value or place");
	}
	span(p, e, from);
	return e;
}

/* Levels of binary operators, those that bind least first */
static const uint8_t OPERATORS[][4] = {{'|'}, {'&'}, {LEX_SHL, LEX_SHR}, {'+', '-'}, {'*', '/', '%'}};
enum { LEVELS = sizeof(OPERATORS) / sizeof(OPERATORS[0]) };

static bool is_operator(const struct parser *p, unsigned level)
{
	for (unsigned i = 0; i < sizeof(OPERATORS[0]) && OPERATORS[level][i]; i++) {
		if (parse_is(p, OPERATORS[level][i]))
			return true;
	}
	return false;
}

static struct syn_expr *binary(struct parser *p, unsigned level)
{
	struct diag_pos from = p->at->pos;
	struct syn_expr *left = level < LEVELS - 1 ? binary(p, level + 1) : primary(p);

	/* a chain of operators is a tree as deep as it is long: its length is bounded by that of a line, see
	 * PROGRAM_MAX_TERMS */
	for (unsigned n = 0; !p->failed && is_operator(p, level); n++) {
		struct syn_expr *e = make(p, SYN_BINARY);

		if (n == PROGRAM_MAX_TERMS) {
			parse_error(p, LIMIT, p->at->pos, "the expression has more than %d terms",
				PROGRAM_MAX_TERMS);
			break;
		}
		e->op = p->at->kind;
		p->at++;
		parse_newlines(p);
		e->left = left;
		e->right = level < LEVELS - 1 ? binary(p, level + 1) : primary(p);
		span(p, e, from);
		left = e;
	}
	return left;
}

struct syn_expr *parse_expr(struct parser *p)
{
	struct diag_pos from = p->at->pos;
	struct syn_expr *e = binary(p, 0);

	if (parse_take(p, '@')) {
		struct syn_expr *at = make(p, SYN_AT);

		at->left = e;
		at->right = binary(p, 0);
		span(p, at, from);
		e = at;
	}
	if (parse_is_word(p, "as") && p->at[1].kind == LEX_WORD) {
		struct parser ahead = *p;

		ahead.at++;
		if (parse_is_type(&ahead)) {
			struct syn_expr *as = make(p, SYN_AS);

			p->at++;
			as->left = e;
			as->type = parse_type(p, false);
			span(p, as, from);
			e = as;
		}
	}
	return e;
}

static const struct {
	uint8_t token, relation;
} RELATIONS[] = {{LEX_EQ, AST_REL_EQ}, {LEX_NE, AST_REL_NE}, {'<', AST_REL_LT}, {'>', AST_REL_GT},
	{LEX_LE, AST_REL_LE}, {LEX_GE, AST_REL_GE}};

static bool relation(const struct parser *p, uint8_t *is)
{
	for (size_t i = 0; i < sizeof(RELATIONS) / sizeof(RELATIONS[0]); i++) {
		*is = RELATIONS[i].relation;
		if (parse_is(p, RELATIONS[i].token))
			return true;
	}
	return false;
}

static struct syn_cond *comparison(struct parser *p)
{
	struct syn_cond *c = pool_alloc(p->pool, sizeof(*c));

	c->left = parse_expr(p);
	c->pos = p->at->pos;
	if (relation(p, &c->relation)) {
		p->at++;
		parse_newlines(p);
		c->right = parse_expr(p);
		return c;
	}
	if (parse_is(p, '='))
		parse_error(
			p, SYNTAX, p->at->pos, "\"=\" gives a value in a declaration; a comparison is ==");
	parse_expected(p, "a comparison (== != < > <= >=)");
	return c;
}

/* What begins with "(" is a condition if one is compared between that and its ")", and a value otherwise */
static bool is_condition(const struct parser *p)
{
	struct parser ahead = *p;
	unsigned open = 0;
	uint8_t ignored;

	for (; !parse_is(&ahead, LEX_END) && !parse_is(&ahead, '{'); ahead.at++) {
		open += parse_is(&ahead, '(');
		if (parse_is(&ahead, ')') && open)
			open--;
		if (!open)
			return false;
		if (relation(&ahead, &ignored))
			return true;
	}
	return false;
}

static struct syn_cond *conditions(struct parser *p, uint8_t kind);

static struct syn_cond *condition(struct parser *p)
{
	struct diag_pos from = p->at->pos;
	struct syn_cond *c;

	if (p->failed || !is_condition(p) || !parse_enter(p))
		return comparison(p);
	parse_take(p, '(');
	parse_newlines(p);
	c = conditions(p, AST_OR);
	close_parenthesis(p, from);
	p->depth--;
	return c;
}

static struct syn_cond *conditions(struct parser *p, uint8_t kind)
{
	const bool and = kind == AST_AND;
	struct syn_cond *first = and? condition(p) : conditions(p, AST_AND);

	for (unsigned n = 0; !p->failed && parse_is(p, and? LEX_AND : LEX_OR); n++) {
		struct syn_cond *c = pool_alloc(p->pool, sizeof(*c));

		*c = (struct syn_cond){.kind = kind, .first = first, .pos = p->at->pos};
		if (n == PROGRAM_MAX_TERMS)
			parse_error(
				p, LIMIT, c->pos, "the condition has more than %d terms", PROGRAM_MAX_TERMS);
		p->at++;
		parse_newlines(p);
		c->second = and? condition(p) : conditions(p, AST_AND);
		first = c;
	}
	return first;
}

struct syn_cond *parse_cond(struct parser *p)
{
	return conditions(p, AST_OR);
}
