/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lex.h - the text as tokens, without comments, blanks and empty lines.
 */
#ifndef PROGRAM_FRONT_LEX_H
#define PROGRAM_FRONT_LEX_H

#include "reddnd/program/front/diag.h"

#include <stdint.h>

struct pool;

enum lex_kind {
	LEX_END, /* of the text; a LEX_NEWLINE comes before it */
	LEX_NEWLINE,
	LEX_NUMBER,
	LEX_WORD,
	/* Punctuation: a character stands for itself, these for two */
	LEX_ARROW = 128, /* -> */
	LEX_RANGE,       /* .. */
	LEX_EQ,          /* == */
	LEX_NE,          /* != */
	LEX_LE,          /* <= */
	LEX_GE,          /* >= */
	LEX_SHL,         /* << */
	LEX_SHR,         /* >> */
	LEX_AND,         /* && */
	LEX_OR,          /* || */
	LEX_BAD,         /* something that was reported; only in a line that has been reported */
};

struct lex_token {
	uint8_t kind; /* enum lex_kind, or a character */
	struct diag_pos pos;
	const char *word; /* WORD: in the pool */
	uint64_t number;
};

/** The tokens of @text, which ends with a LEX_END. Errors go to @d. */
struct lex_token *lex(struct pool *p, struct diag *d, const char *text, size_t len);

/** How messages name a token: in quotes, or "the end of the line". Static storage, two at a time. */
const char *lex_name(const struct lex_token *t);

#endif
