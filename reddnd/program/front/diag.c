/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/diag.h"

#include "reddnd/program/front/limits.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MESSAGE = 400, /* bytes of one */
	SHOWN = 100,   /* bytes of a line of source */
	LED = 60,      /* of which before the caret, where the line is longer */
};

struct diag {
	const char *name, *text;
	size_t len;
	unsigned errors;
	struct {
		const char *code;
		struct diag_pos at;
		char text[MESSAGE];
		size_t begin; /* in the output; its notes follow */
	} error[PROGRAM_MAX_ERRORS];
	bool silent; /* the last one was dropped; so are its notes */
	FILE *out;
	char *output;
	size_t output_len;
};

struct diag *diag_new(const char *name, const char *text, size_t len)
{
	struct diag *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->name = name;
	d->text = text;
	d->len = len;
	d->out = open_memstream(&d->output, &d->output_len);
	if (!d->out) {
		free(d);
		return NULL;
	}
	return d;
}

void diag_free(struct diag *d)
{
	if (!d)
		return;
	fclose(d->out);
	free(d->output);
	free(d);
}

/* Bytes of the UTF-8 sequence at @s, of @left bytes; 0 if it is none */
static size_t sequence(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
	}
	return n;
}

/* Bytes [from, to) of a line, what a terminal should not get replaced by question marks */
static void show(const struct diag *d, const char *line, size_t from, size_t to)
{
	for (size_t i = from; i < to;) {
		size_t n = sequence((const unsigned char *)line + i, to - i);

		if (!n || (n == 1 && (line[i] < ' ' || line[i] == 0x7f) && line[i] != '\t')) {
			fputc('?', d->out);
			i++;
			continue;
		}
		fwrite(line + i, 1, n, d->out);
		i += n;
	}
}

/* A line and its bytes, without what ends it */
static const char *find_line(const struct diag *d, unsigned number, size_t *len)
{
	const char *line = d->text, *end = d->text + d->len, *eol;

	for (unsigned n = 1; n < number && line < end; n++) {
		eol = memchr(line, '\n', (size_t)(end - line));
		line = eol ? eol + 1 : end;
	}
	eol = memchr(line, '\n', (size_t)(end - line));
	*len = (size_t)((eol ? eol : end) - line);
	if (*len && line[*len - 1] == '\r')
		(*len)--;
	return line;
}

struct diag_pos diag_line(const struct diag *d, unsigned number)
{
	size_t len, from = 0;
	const char *line = find_line(d, number, &len), *comment = memchr(line, '#', len);

	if (comment)
		len = (size_t)(comment - line);
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	while (from < len && (line[from] == ' ' || line[from] == '\t'))
		from++;
	return (struct diag_pos){number, (unsigned)from + 1, (unsigned)(len - from)};
}

static void quote(const struct diag *d, struct diag_pos at)
{
	size_t len, from = 0, to, col = at.col - 1, under;
	const char *line = find_line(d, at.line, &len);

	if (col > len)
		col = len;
	if (len > SHOWN && col > LED)
		from = col - LED;
	to = len - from > SHOWN ? from + SHOWN : len;

	fprintf(d->out, "%5u | %s", at.line, from ? "..." : "");
	show(d, line, from, to);
	fprintf(d->out, "%s\n      | %s", to < len ? "..." : "", from ? "   " : "");
	for (size_t i = from; i < col; i++)
		fputc(line[i] == '\t' ? '\t' : ' ', d->out);
	under = at.len > 1 ? at.len : 1;
	if (under > to - col)
		under = to > col ? to - col : 1;
	fputc('^', d->out);
	while (--under)
		fputc('~', d->out);
	fputc('\n', d->out);
}

static void print(const struct diag *d, struct diag_pos at, const char *kind, const char *message)
{
	if (!at.line) {
		fprintf(d->out, "%s: %s: %s\n", d->name, kind, message);
		return;
	}
	fprintf(d->out, "%s:%u:%u: %s: %s\n", d->name, at.line, at.col, kind, message);
	quote(d, at);
}

const char *diag_kind_name(enum diag_kind kind)
{
	static const char *const names[] = {
#define X(kind) #kind,
		DIAG_KINDS(X)
#undef X
	};

	return names[kind];
}

void diag_report(struct diag *d, const char *code, struct diag_pos at, const char *fmt, ...)
{
	unsigned n = d->errors;
	va_list ap;

	d->silent = diag_is_full(d);
	for (unsigned e = 0; e < n && !d->silent; e++)
		d->silent = d->error[e].at.line == at.line;
	if (d->silent)
		return;
	fflush(d->out);
	d->error[n].code = code;
	d->error[n].at = at;
	d->error[n].begin = d->output_len;
	d->errors++;
	va_start(ap, fmt);
	vsnprintf(d->error[n].text, sizeof(d->error[n].text), fmt, ap);
	va_end(ap);
	print(d, at, "error", d->error[n].text);
}

void diag_note(struct diag *d, struct diag_pos at, const char *fmt, ...)
{
	char message[MESSAGE];
	va_list ap;

	if (d->silent)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	print(d, at, "note", message);
}

unsigned diag_errors(const struct diag *d)
{
	return d->errors;
}

bool diag_is_full(const struct diag *d)
{
	return d->errors == PROGRAM_MAX_ERRORS;
}

/* The index of the error that is number @n in the order of lines; those of a line keep their order */
static unsigned nth(const struct diag *d, unsigned n)
{
	for (unsigned e = 0;; e++) {
		unsigned before = 0;

		for (unsigned k = 0; k < d->errors; k++)
			before += d->error[k].at.line < d->error[e].at.line ||
				  (d->error[k].at.line == d->error[e].at.line && k < e);
		if (before == n)
			return e;
	}
}

struct diag_entry diag_entry(const struct diag *d, unsigned n)
{
	unsigned e = nth(d, n);

	return (struct diag_entry){d->error[e].code, d->error[e].text, d->error[e].at};
}

char *diag_text(const struct diag *d)
{
	char *text = NULL;
	size_t len;
	FILE *out;

	if (fflush(d->out))
		return NULL;
	out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	for (unsigned n = 0; n < d->errors; n++) {
		unsigned e = nth(d, n);
		size_t begin = d->error[e].begin;
		size_t end = e + 1 < d->errors ? d->error[e + 1].begin : d->output_len;

		fwrite(d->output + begin, 1, end - begin, out);
	}
	if (diag_is_full(d))
		fprintf(out, "%s: %u errors are shown; there may be more\n", d->name, d->errors);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
