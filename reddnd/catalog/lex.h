/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lex.h - private to the catalog: finds includes and integers in the text of a configuration, where the
 * scanner of libconfig finds them (lib/scanner.l of 1.5 and 1.7), so not in comments, strings, names and
 * fractions.
 */
#ifndef CATALOG_LEX_H
#define CATALOG_LEX_H

#include <stddef.h>

enum lex_token {
	LEX_END,
	LEX_INCLUDE,
	LEX_INTEGER,
	LEX_OPEN, /* a string, a comment or the name of an include, which has no end in this text */
};

struct lex {
	const char *begin, *at, *end;
	unsigned line; /* of @at, from 1 */
	/* Of the token: an integer, from its sign to its last digit, without a suffix; or the name of an
	 * include as it is written, from behind its quote to that at its end */
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
