/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(int c)
{
	const char *hex = "0123456789abcdef", *at = c > 0 ? strchr(hex, c) : NULL;

	return at ? (int)(at - hex) : -1;
}

__attribute__((noreturn)) static void malformed(unsigned line)
{
	fprintf(stderr, "corpus: line %u is malformed\n", line);
	exit(1);
}

/* After a backslash */
static int escaped(FILE *f, unsigned line)
{
	int high, low, c = getc(f);

	if (c == '\\')
		return c;
	high = c == 'x' ? digit(getc(f)) : -1;
	low = high < 0 ? -1 : digit(getc(f));
	if (low < 0)
		malformed(line);
	return high << 4 | low;
}

bool corpus_read(FILE *file, struct input *in, unsigned *line)
{
	int c = getc(file);

	in->len = 0;
	if (c == EOF)
		return false;
	++*line;
	for (; c != '\n'; c = getc(file)) {
		if (c == EOF || in->len == sizeof(in->bytes) - 1)
			malformed(*line);
		in->bytes[in->len++] = (char)(c == '\\' ? escaped(file, *line) : c);
	}
	in->bytes[in->len] = 0;
	return true;
}

void corpus_write(FILE *file, const struct input *in)
{
	for (size_t i = 0; i < in->len; i++) {
		unsigned char c = (unsigned char)in->bytes[i];

		if (c == '\\')
			fputs("\\\\", file);
		else if (c >= ' ' && c < 127)
			putc(c, file);
		else
			fprintf(file, "\\x%02x", c);
	}
	putc('\n', file);
}
