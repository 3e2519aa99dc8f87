/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * diag.h - the errors of a program, each with a code and a place, and their text:
 *
 *     list-walk.rdn:12:9: error: there is no "nxt" here; did you mean "next"?
 *        12 |   read nxt -> key
 *           |        ^~~
 *
 * One error per line of source, PROGRAM_MAX_ERRORS per run: the compiler goes on after an error, and does not
 * report its consequences. One thread at a time.
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

/** Kinds of errors: the codes of those that the compiler finds itself. */
#define DIAG_KINDS(X)                                                                                        \
	X(SYNTAX) /* a word or sign that does not belong there */                                            \
	X(NAME)   /* unknown, used twice, or never used */                                                   \
	X(TYPE)   /* of another type, byte order or kind than is needed */                                   \
	X(VALUE)  /* a number that is out of its range */                                                    \
	X(LIMIT)  /* more than the language, a NIC or an instance has room for */                            \
	X(PLACE)  /* cannot be read, written or used there */                                                \
	X(LOOP)   /* a loop, or what is in it, or how it ends */                                             \
	X(ANSWER) /* no answer, two answers, or one at the wrong time */                                     \
	X(AHEAD)  /* a read that is done ahead of its condition */                                           \
	X(ORDER)  /* an order given by hand */                                                               \
	X(DEVICE) /* the device cannot do it */

enum diag_kind {
#define X(kind) DIAG_##kind,
	DIAG_KINDS(X)
#undef X
};

/**
 * Reports an error of a kind: "what is wrong; what would be right", without a full stop or newline. Does
 * nothing if an error of the same line is reported already.
 */
#define diag_error(d, kind, at, ...) diag_report(d, diag_kind_name(DIAG_##kind), at, __VA_ARGS__)
const char *diag_kind_name(enum diag_kind kind);
/** The same with a code of somebody else's; @code is not copied. */
void diag_report(struct diag *d, const char *code, struct diag_pos at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/** More about the error just reported, elsewhere in the source. Does nothing if that error was dropped. */
void diag_note(struct diag *d, struct diag_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** All of a line, without its comment. */
struct diag_pos diag_line(const struct diag *d, unsigned line);

unsigned diag_errors(const struct diag *d);

struct diag_entry {
	const char *code, *text; /* of the error, without its notes */
	struct diag_pos at;
};

/** Error @n of diag_errors(), in the order of lines. Valid until the next error. */
struct diag_entry diag_entry(const struct diag *d, unsigned n);

/** PROGRAM_MAX_ERRORS were reported: it is time to give up. */
bool diag_is_full(const struct diag *d);

/** All errors as text, in the order of lines, "" if there is none; the caller frees it. NULL: no memory. */
char *diag_text(const struct diag *d);

#endif
