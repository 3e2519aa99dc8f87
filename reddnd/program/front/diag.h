/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diag.h - what the compiler has to say about a program, as text:
 *
 *     list-walk.rdn:12:9: error: there is no "nxt" here; did you mean "next"?
 *        12 |   read nxt -> key
 *           |        ^~~
 *
 * One error per line of source, PROGRAM_MAX_ERRORS per run: whoever finds an error goes on after it without
 * reporting what only follows from it. One thread at a time.
 */
#ifndef PROGRAM_FRONT_DIAG_H
#define PROGRAM_FRONT_DIAG_H

#include <stdbool.h>
#include <stddef.h>

/** A range of characters in the source. line 0: the program as a whole. */
struct diag_pos {
	unsigned line, col; /* from 1; col in bytes */
	unsigned len;       /* bytes to underline, at least 1 is */
};

struct diag;

/** Copies neither @name nor @text, which must outlive it. NULL: no memory. */
struct diag *diag_new(const char *name, const char *text, size_t len);
void diag_free(struct diag *d);

/** "what is wrong; what would be right", without a full stop or newline. Says nothing about a line already
 * reported. */
void diag_error(struct diag *d, struct diag_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** More about the error just reported, elsewhere in the source. Silent if that error was. */
void diag_note(struct diag *d, struct diag_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** All that a line says, comments excepted. */
struct diag_pos diag_line(const struct diag *d, unsigned line);

unsigned diag_errors(const struct diag *d);
/** PROGRAM_MAX_ERRORS were reported: it is time to give up. */
bool diag_is_full(const struct diag *d);

/** All of it, in the order of lines, "" if there is nothing; to be freed by the caller. NULL: no memory. */
char *diag_text(const struct diag *d);

#endif
