/* SPDX-License-Identifier: BSD-2-Clause */
/* corpus.h - files of inputs that are tried again and again: a line is one, in which \xNN is a byte and \\ a
 * backslash. */
#ifndef TESTS_FUZZ_CORPUS_H
#define TESTS_FUZZ_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { INPUT_MAX = 8192 };

struct input {
	char bytes[INPUT_MAX];
	size_t len;
};

/** The next input of @file; false at the end. A malformed line ends the program. @line counts. */
bool corpus_read(FILE *file, struct input *in, unsigned *line);
void corpus_write(FILE *file, const struct input *in);

#endif
