/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lex.h - private to the catalog: finds includes, integers, and what versions of libconfig read differently
 * in the text of a configuration, where their scanners find them (lib/scanner.l of 1.5, 1.7 and 1.8), so not
 * in comments, strings, names and fractions.
 */
#ifndef CATALOG_LEX_H
#define CATALOG_LEX_H

#include <stddef.h>

enum lex_token {
	LEX_END,
	LEX_INCLUDE,
	LEX_INTEGER,
	/* A string, a comment or the name of an include, which has no end in this text; a comment of # or //
	 * with a line feed, as 1.5 has it */
	LEX_OPEN,
	LEX_BASE,   /* an integer with 0b, 0o or 0q in front, from 1.8 on */
	LEX_COMMA,  /* before the end of an array or a list, from 1.7 on */
	LEX_ESCAPE, /* \a, \b or \v in a string, from 1.8 on; before that its two characters */
};

struct lex {
	const char *begin, *at, *end;
	unsigned line;  /* of @at, from 1 */
	unsigned comma; /* line of a comma that nothing but blanks and comments follow; 0: there is none */
	/* Of the token: an integer, from its sign to its last digit, without a suffix; what is read
	 * differently; or the name of an include as it is written, from behind its quote to that at its end
	 */
	const char *token;
	size_t len;
	unsigned token_line;
	const char *name; /* that stands before the token, name_len characters; NULL: none */
	size_t name_len;
	unsigned suffix; /* letters L behind the integer: 0 to 2 */
};

/** Begins with @size bytes of @text, which are borrowed; a zero byte follows them. */
void lex_begin(struct lex *l, const char *text, size_t size);

/** The next token; LEX_END for ever when there is none. */
enum lex_token lex_next(struct lex *l);

/** The name of the include that lex_next() has found, to be freed; NULL: no memory. */
char *lex_include(const struct lex *l);

#endif
