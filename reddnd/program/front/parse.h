/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parse.h - private to the parser: its place in the tokens, and the parts that statements are made of.
 *
 * A function that finds an error reports it and sets `failed`; whoever called it goes on to the end of the
 * statement without reporting more (parse_skip), where `failed` is cleared. What such a function returns is
 * not looked at.
 */
#ifndef PROGRAM_FRONT_PARSE_H
#define PROGRAM_FRONT_PARSE_H

#include "reddnd/program/front/lex.h"
#include "reddnd/program/front/syntax.h"

struct parser {
	struct pool *pool;
	struct diag *d;
	const struct lex_token *at;
	bool failed;
	unsigned depth; /* of blocks and parentheses */
};

/** "wrong; right": reports at the current token that @what would be right. */
void parse_expected(struct parser *p, const char *what);
/** diag_error(), unless the statement has one already. */
#define parse_error(p, kind, at, ...)                                                                        \
	do {                                                                                                 \
		if (!(p)->failed)                                                                            \
			diag_error((p)->d, kind, (at), __VA_ARGS__);                                         \
		(p)->failed = true;                                                                          \
	} while (0)

bool parse_is(const struct parser *p, int kind);
bool parse_is_word(const struct parser *p, const char *word);
/** Takes the token if it is that one. */
bool parse_take(struct parser *p, int kind);
bool parse_take_word(struct parser *p, const char *word);
/** The same, and an error if it is not; @what: how the message names what should be here. */
bool parse_need(struct parser *p, int kind, const char *what);
bool parse_need_word(struct parser *p, const char *word);
void parse_newlines(struct parser *p);
/** Enters one level of nesting; an error at PROGRAM_MAX_NEST. Left with p->depth--. */
bool parse_enter(struct parser *p);

/** A name that is declared: no word of the language. */
struct syn_name parse_new_name(struct parser *p, const char *what);
/** Any word: fields may be called like a word of the language. */
struct syn_name parse_name(struct parser *p, const char *what);

/** An expression, a place or an operand: which of them the context wants is decided later. */
struct syn_expr *parse_expr(struct parser *p);
/** [EXPR], or NULL if there is none. */
struct syn_expr *parse_index(struct parser *p);
struct syn_type parse_type(struct parser *p, bool structs);
struct syn_cond *parse_cond(struct parser *p);

/** A verb, its label and fence already taken. */
void parse_verb(struct parser *p, struct syn_verb *v);
bool parse_is_verb(const struct parser *p);
enum { PARSE_VERBS = 16 };
/** Their PARSE_VERBS words; how many there are. */
unsigned parse_verb_words(const char **words);

#endif
