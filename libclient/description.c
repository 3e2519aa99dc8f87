/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "protocol/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void reddn_description_deinit(struct reddn_description *d)
{
	free(d->text);
	free(d->arg);
	free(d->field);
	*d = (struct reddn_description){0};
}

bool reddn_description_add(char *text, size_t *len, size_t whole, const char *part)
{
	size_t n = strlen(part);

	if (whole > REDDN_WIRE_DESCRIPTION_MAX || whole < *len || n > whole - *len || (!n && *len < whole))
		return false;
	memcpy(text + *len, part, n + 1);
	*len += n;
	return true;
}

/* The next word of *rest, which ends with a zero then; "" at the end */
static char *next_word(char **rest)
{
	char *word = *rest;

	*rest += strcspn(word, " ");
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

/* Programs name things so: "hit", "probe[1].at" */
static bool is_name(const char *word)
{
	return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_[].")] == '\0';
}

static bool read_number(const char *word, uint32_t *number)
{
	char *end;
	unsigned long n = strtoul(word, &end, 10);

	*number = (uint32_t)n;
	return *word >= '0' && *word <= '9' && !*end && n <= UINT32_MAX;
}

/* "le64", or "bytes" and a number in the rest of the statement */
static bool read_type(struct reddn_reply_field *f, const char *type, char **rest)
{
	uint32_t bits;

	if (strcmp(type, "bytes") == 0 || strcmp(type, "max") == 0) {
		f->kind = *type == 'b' ? REDDN_REPLY_BYTES : REDDN_REPLY_UP_TO;
		return read_number(next_word(rest), &f->bytes);
	}
	f->kind = strncmp(type, "le", 2) == 0 ? REDDN_REPLY_LE : REDDN_REPLY_BE;
	if (f->kind == REDDN_REPLY_BE && strncmp(type, "be", 2) != 0 && strcmp(type, "u8") != 0)
		return false;
	if (!read_number(type + (*type == 'u' ? 1 : 2), &bits) || bits % 8 || bits > 64)
		return false;
	f->bytes = bits / 8;
	return true;
}

static bool read_reply(struct reddn_description *d, char *rest, uint32_t reply_max)
{
	struct reddn_reply_field *f = &d->field[d->nfields++];
	char *at;

	f->name = next_word(&rest);
	at = next_word(&rest);
	return is_name(f->name) && read_number(at, &f->offset) && read_type(f, next_word(&rest), &rest) &&
	       f->bytes && f->offset <= reply_max && f->bytes <= reply_max - f->offset;
}

static bool read_statement(struct reddn_description *d, char *rest, uint32_t reply_max)
{
	const char *word = next_word(&rest);

	if (strcmp(word, "reply") == 0)
		return read_reply(d, rest, reply_max);
	if (strcmp(word, "arg") != 0)
		return true;
	d->arg[d->nargs] = next_word(&rest);
	return is_name(d->arg[d->nargs++]);
}

int reddn_description_read(struct reddn_description *d, char *text, uint64_t program, uint32_t reply_max)
{
	size_t statements = 1;
	int r = 0;

	for (const char *p = text; *p; p++)
		statements += *p == ';';
	*d = (struct reddn_description){.text = text,
		.program = program,
		.reply_max = reply_max,
		.arg = calloc(statements, sizeof(*d->arg)),
		.field = calloc(statements, sizeof(*d->field))};
	if (!d->arg || !d->field)
		r = -ENOMEM;
	for (char *at = text, *end; *at && r == 0; at = end) {
		end = at + strcspn(at, ";");
		if (*end)
			*end++ = '\0';
		r = read_statement(d, at, reply_max) ? 0 : -EPROTO;
	}
	if (r < 0)
		reddn_description_deinit(d);
	return r;
}

bool reddn_description_is_of(const struct reddn_description *d, uint64_t program, uint32_t reply_max)
{
	return d->text && d->program == program && d->reply_max == reply_max;
}
