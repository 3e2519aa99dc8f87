/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line.h - text in a buffer of the caller, put together piece by piece. What does not fit is cut off; the
 * text always ends with a zero.
 */
#ifndef CHAIN_IR_LINE_H
#define CHAIN_IR_LINE_H

#include <stddef.h>

struct chain_line {
	char *text;
	size_t size, used; /* at least 1; without the zero */
};

/** Appends. */
void __attribute__((format(printf, 2, 3))) chain_line_add(struct chain_line *l, const char *fmt, ...);

#endif
