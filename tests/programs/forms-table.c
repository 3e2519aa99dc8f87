/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/forms-table.h"

#include "util/array.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_LINES = 400,
	MAX_LINE = 2000,
	MAX_EACHES = 6,
	MAX_NAMES = 8,
	MAX_ALTERNATIVES = 80,
	MAX_TEXT = 1 << 17
};

/* Names that stand for something else in each of its alternatives */
struct each {
	char name[MAX_NAMES][16];
	unsigned nnames, nalternatives, chosen;
	char *alternative[MAX_ALTERNATIVES];
};

struct reader {
	const char *path;
	unsigned line; /* in the file */
	char title[120];
	unsigned title_line;
	struct each each[MAX_EACHES];
	unsigned neaches;
	char *body[MAX_LINES]; /* the lines of an entry */
	unsigned at[MAX_LINES], nlines;
	struct forms_case *c;
	bool failed;
};

static bool wrong(struct reader *r, unsigned line, const char *what, const char *text)
{
	fprintf(stderr, "%s:%u: %s: %s\n", r->path, line, what, text);
	r->failed = true;
	return false;
}

static const char *skip(const char *p)
{
	return p + strspn(p, " \t");
}

static bool takes(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) || isalnum((unsigned char)(*p)[n]) || (*p)[n] == '_')
		return false;
	*p = skip(*p + n);
	return true;
}

/* ---- alternatives ----------------------------------------------------------------------------- */

/* Part @n of "a ; b ; c" */
static bool part(const char *text, unsigned n, char *to, size_t size)
{
	const char *end;

	while (n-- && text) {
		text = strstr(text, " ; ");
		text = text ? text + 3 : NULL;
	}
	if (!text)
		return false;
	end = strstr(text, " ; ");
	snprintf(to, size, "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
	while (*to && to[strlen(to) - 1] == ' ')
		to[strlen(to) - 1] = 0;
	return true;
}

/* What $NAME stands for */
static bool stands_for(const struct reader *r, const char *name, size_t len, char *to, size_t size)
{
	for (unsigned i = 0; i < r->neaches; i++)
		for (unsigned k = 0; k < r->each[i].nnames; k++)
			if (strlen(r->each[i].name[k]) == len && !strncmp(r->each[i].name[k], name, len))
				return part(r->each[i].alternative[r->each[i].chosen], k, to, size);
	return false;
}

static bool substitute(struct reader *r, unsigned line, const char *from, char *to, size_t size)
{
	char value[MAX_LINE], rest[MAX_LINE];
	size_t n = 0;

	snprintf(to, size, "%s", from);
	for (unsigned steps = 0; (from = strchr(to, '$')) && steps < 100; steps++) {
		for (n = 0; isupper((unsigned char)from[1 + n]) || isdigit((unsigned char)from[1 + n]);)
			n++;
		if (!n || !stands_for(r, from + 1, n, value, sizeof(value)))
			return wrong(r, line, "what does this stand for?", from);
		snprintf(rest, sizeof(rest), "%s", from + 1 + n);
		snprintf(to + (from - to), size - (size_t)(from - to), "%s%s", value, rest);
	}
	return true;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static bool put_number(const char *type, uint64_t v, uint8_t *to, uint32_t *n)
{
	bool le = *type == 'l';
	unsigned bytes = (unsigned)atoi(type + (*type == 'u' ? 1 : 2)) / 8;

	if (!bytes || bytes > 8 || *n + bytes > FORMS_MAX_BYTES || (bytes < 8 && v >> 8 * bytes))
		return false;
	for (unsigned i = 0; i < bytes; i++)
		to[*n + (le ? i : bytes - 1 - i)] = (uint8_t)(v >> 8 * i);
	*n += bytes;
	return true;
}

/* 0a1b, be24:77, 3*00 */
static bool one(const char *word, uint8_t *to, uint32_t *n)
{
	const char *colon = strchr(word, ':'), *times = strchr(word, '*');
	char *end;

	if (times) {
		for (unsigned long i = strtoul(word, NULL, 0); i--;)
			if (!one(times + 1, to, n))
				return false;
		return true;
	}
	if (colon) {
		uint64_t v = strtoull(colon + 1, &end, 0);

		return !*end && end != colon + 1 && put_number(word, v, to, n);
	}
	for (; *word; word += 2) {
		char two[3] = {word[0], word[1], 0};

		if (*n == FORMS_MAX_BYTES || !isxdigit((unsigned char)word[0]) ||
			!isxdigit((unsigned char)word[1]))
			return false;
		to[(*n)++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return true;
}

static bool all_bytes(const char *text, uint8_t *to, uint32_t *n)
{
	char copy[MAX_LINE], *save, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	*n = 0;
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!one(word, to, n))
			return false;
	return true;
}

/* [NAME] [@ OFFSET] = BYTES */
static bool add_bytes(struct reader *r, unsigned line, const char *text, bool named, struct forms_list *list)
{
	struct forms_bytes *b = &list->v[list->n];
	uint8_t bytes[FORMS_MAX_BYTES];
	const char *p = text;
	char *end;

	if (list->n == COUNT(list->v))
		return wrong(r, line, "too many", text);
	*b = (struct forms_bytes){0};
	if (named) {
		size_t n = strcspn(p, " ");

		snprintf(b->name, sizeof(b->name), "%.*s", (int)n, p);
		p = skip(p + n);
	}
	if (*p == '@') {
		b->at = (uint32_t)strtoul(p + 1, &end, 0);
		p = skip(end);
	}
	if (*p != '=' || !all_bytes(skip(p + 1), bytes, &b->len))
		return wrong(r, line, "no bytes", text);
	b->bytes = malloc(b->len ? b->len : 1);
	if (!b->bytes)
		abort();
	memcpy(b->bytes, bytes, b->len);
	list->n++;
	return true;
}

/* NAME BYTES */
static bool add_size(struct reader *r, unsigned line, const char *text)
{
	struct forms_list *list = &r->c->size;
	struct forms_bytes *b = &list->v[list->n];

	if (list->n == COUNT(list->v) || sscanf(text, "%23s %u", b->name, &b->len) != 2)
		return wrong(r, line, "no size of a region", text);
	b->bytes = NULL;
	list->n++;
	return true;
}

static void free_list(struct forms_list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		free(list->v[i].bytes);
	list->n = 0;
}

/* ---- the lines of an entry -------------------------------------------------------------------- */

/* x=5 key=hex:0102 */
static bool add_args(struct reader *r, unsigned line, const char *text, struct forms_vector *v)
{
	char copy[MAX_LINE], *save, *word, *value, *end;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (!value || v->nargs == FORMS_MAX_ARGS)
			return wrong(r, line, "no argument", word);
		*value++ = 0;
		snprintf(v->arg[v->nargs].name, sizeof(v->arg[0].name), "%s", word);
		if (!strncmp(value, "hex:", 4)) {
			uint8_t bytes[FORMS_MAX_BYTES];
			uint32_t n = 0;

			if (!one(value + 4, bytes, &n) || n > sizeof(v->arg[0].raw))
				return wrong(r, line, "no bytes", value);
			v->arg[v->nargs].bytes = true;
			memcpy(v->arg[v->nargs].raw, bytes, n);
		} else {
			v->arg[v->nargs].number = strtoull(value, &end, 0);
			if (*end || end == value)
				return wrong(r, line, "no number", value);
		}
		v->nargs++;
	}
	return true;
}

static unsigned lines_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* A line of the program: it may be several, and of each */
static bool add_text(struct reader *r, unsigned line, const char *text)
{
	size_t used = strlen(r->c->text);
	unsigned long times = 1;
	char *end;

	if (*text == '*') {
		times = strtoul(text + 1, &end, 0);
		text = end;
	}
	text += *text == ' ';
	for (unsigned long i = 0; i < times; i++) {
		for (const char *p = text; *p && used + 8 < MAX_TEXT; p++) {
			if (p[0] == '\\' && p[1] == 'n') {
				r->c->text[used++] = '\n';
				r->c->text[used] = 0;
				p++;
				if (p[1] == '!') {
					r->c->refused_line = lines_of(r->c->text) + 1;
					p++;
				}
			} else if (*p == '#' && p[1] == '#') {
				used += (size_t)sprintf(r->c->text + used, "%lu", i);
				p++;
			} else {
				r->c->text[used++] = *p;
			}
		}
		if (used + 8 >= MAX_TEXT)
			return wrong(r, line, "the program is too long", text);
		r->c->text[used++] = '\n';
	}
	r->c->text[used] = 0;
	return true;
}

/* A number, or four bytes */
static bool take_imm(struct reader *r, unsigned line, const char *text, uint32_t *imm)
{
	uint8_t bytes[FORMS_MAX_BYTES];
	uint32_t n = 0;
	char *end;

	*imm = (uint32_t)strtoul(text, &end, 0);
	if (!*end && (!strncmp(text, "0x", 2) || strlen(text) < 4))
		return true;
	*imm = 0;
	if (!all_bytes(text, bytes, &n) || n != 4)
		return wrong(r, line, "no immediate", text);
	for (unsigned i = 0; i < n; i++)
		*imm = *imm << 8 | bytes[i];
	return true;
}

static bool one_setting(struct reader *r, unsigned line, const char *p)
{
	struct forms_case *c = r->c;
	struct forms_vector *v = c->nvectors ? &c->vector[c->nvectors - 1] : NULL;
	size_t n;

	if (takes(&p, "request")) {
		if (c->nvectors == FORMS_MAX_VECTORS)
			return wrong(r, line, "too many requests", p);
		return add_args(r, line, p, &c->vector[c->nvectors++]);
	}
	if (takes(&p, "memory"))
		return add_bytes(r, line, p, true, v ? &v->memory : &c->memory);
	if (takes(&p, "size"))
		return add_size(r, line, p);
	if (v && takes(&p, "reply"))
		return add_bytes(r, line, p, false, &v->reply);
	if (v && takes(&p, "payload"))
		return add_bytes(r, line, p, false, &v->payload);
	if (v && takes(&p, "sent")) {
		v->sends = true;
		return add_bytes(r, line, p, false, &v->sent);
	}
	if (v && takes(&p, "imm")) {
		v->has_imm = true;
		return take_imm(r, line, p, &v->imm);
	}
	if (takes(&p, "refused")) {
		n = strcspn(p, " ");
		snprintf(c->refused, sizeof(c->refused), "%.*s", (int)n, p);
		snprintf(c->words, sizeof(c->words), "%s", skip(p + n));
		return true;
	}
	if (takes(&p, "device"))
		return snprintf(c->device, sizeof(c->device), "%s", p) > 0;
	if (takes(&p, "masks"))
		return c->masks = true;
	if (takes(&p, "calculates"))
		return c->calculates = true;
	if (takes(&p, "cheap"))
		return true;
	if (takes(&p, "unrolled"))
		return c->unrolled = true;
	if (takes(&p, "quiet"))
		return c->quiet = true;
	return wrong(r, line, "no such line", p);
}

static bool setting(struct reader *r, unsigned line, char *p)
{
	char *next = strstr(p, "\\n");

	if (next)
		*next = 0;
	return one_setting(r, line, p) && (!next || setting(r, line, next + 2));
}

/* One alternative */
static void make(struct reader *r, void (*f)(void *arg, const struct forms_case *c), void *arg)
{
	char line[MAX_LINE];
	struct forms_case *c = r->c;

	*c = (struct forms_case){
		.file = r->path, .line = r->title_line, .text = c->text, .vector = c->vector};
	memset(c->vector, 0, FORMS_MAX_VECTORS * sizeof(*c->vector));
	snprintf(c->title, sizeof(c->title), "%s", r->title);
	for (unsigned i = 0; i < r->neaches; i++) {
		size_t used = strlen(c->which);

		snprintf(c->which + used, sizeof(c->which) - used, "%s%s", i ? ", " : "",
			r->each[i].alternative[r->each[i].chosen]);
	}
	strcpy(c->text, "program p\n");
	for (unsigned i = 0; i < r->nlines; i++) {
		if (!substitute(r, r->at[i], r->body[i], line, sizeof(line)))
			break;
		if (!strncmp(line + (*line != 0), " program", 8) && !strcmp(c->text, "program p\n"))
			c->text[0] = 0;
		if (*line == '!')
			c->refused_line = lines_of(c->text) + 1;
		if (*line == '|' || *line == '!' ? !add_text(r, r->at[i], line + 1)
						 : !setting(r, r->at[i], line))
			break;
	}
	if (!r->failed)
		f(arg, c);
	free_list(&c->memory);
	free_list(&c->size);
	for (unsigned i = 0; i < c->nvectors; i++) {
		free_list(&c->vector[i].payload);
		free_list(&c->vector[i].memory);
		free_list(&c->vector[i].reply);
		free_list(&c->vector[i].sent);
	}
}

static bool names(const char *text, const char *name)
{
	size_t len = strlen(name);

	while ((text = strchr(text, '$'))) {
		size_t n = strspn(++text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

		if (n == len && !strncmp(text, name, n))
			return true;
	}
	return false;
}

/* A name that nothing uses is a mistake */
static void check_names(struct reader *r)
{
	for (unsigned i = 0; i < r->neaches; i++)
		for (unsigned k = 0; k < r->each[i].nnames; k++) {
			bool used = false;

			for (unsigned b = 0; b < r->nlines; b++)
				used |= names(r->body[b], r->each[i].name[k]);
			for (unsigned e = 0; e < r->neaches; e++)
				for (unsigned a = 0; a < r->each[e].nalternatives; a++)
					used |= names(r->each[e].alternative[a], r->each[i].name[k]);
			if (!used)
				wrong(r, r->title_line, "nothing uses", r->each[i].name[k]);
		}
}

/* All of them: the last name changes first */
static void finish(struct reader *r, void (*f)(void *arg, const struct forms_case *c), void *arg)
{
	unsigned i = 0;

	if (*r->title && !r->nlines)
		wrong(r, r->title_line, "there is nothing in it", r->title);
	check_names(r);
	do {
		if (*r->title && !r->failed)
			make(r, f, arg);
		for (i = r->neaches; i > 0 && ++r->each[i - 1].chosen == r->each[i - 1].nalternatives; i--)
			r->each[i - 1].chosen = 0;
	} while (i > 0 && !r->failed);
	for (unsigned k = 0; k < r->nlines; k++)
		free(r->body[k]);
	for (unsigned e = 0; e < r->neaches; e++)
		for (unsigned k = 0; k < r->each[e].nalternatives; k++)
			free(r->each[e].alternative[k]);
	memset(r->each, 0, sizeof(r->each));
	r->neaches = r->nlines = 0;
}

static char *copy_of(const char *text)
{
	char *p = strdup(text);

	if (!p)
		abort();
	return p;
}

/* NAME ; NAME, and the alternatives in the lines below; or NAME = a | b | c */
static bool add_each(struct reader *r, const char *text)
{
	struct each *e = &r->each[r->neaches];
	char names[MAX_LINE], *values, *word;

	if (r->neaches == MAX_EACHES)
		return wrong(r, r->line, "too many", text);
	r->neaches++;
	snprintf(names, sizeof(names), "%s", text);
	values = strstr(names, " = ");
	if (values) {
		*values = 0;
		values += 3;
	}
	while (e->nnames < MAX_NAMES && part(names, e->nnames, e->name[e->nnames], sizeof(e->name[0])))
		e->nnames++;
	while (values && e->nalternatives < MAX_ALTERNATIVES) {
		word = strstr(values, " | ");
		if (word)
			*word = 0;
		e->alternative[e->nalternatives++] = copy_of(skip(values));
		values = word ? word + 3 : NULL;
	}
	return true;
}

static bool take_line(
	struct reader *r, const char *line, void (*f)(void *arg, const struct forms_case *c), void *arg)
{
	struct each *e = r->neaches ? &r->each[r->neaches - 1] : NULL;
	const char *p = skip(line);

	if (*p == '#' || !*p)
		return true;
	if (line[0] == '=') {
		finish(r, f, arg);
		snprintf(r->title, sizeof(r->title), "%s", skip(line + 1));
		r->title_line = r->line;
		return true;
	}
	p = line;
	if (!*r->title)
		return wrong(r, r->line, "an entry begins with \"= TITLE\"", line);
	if (takes(&p, "form"))
		return true; /* for forms.sh */
	if (takes(&p, "each"))
		return add_each(r, p);
	if (line[0] == ' ' && e && !r->nlines) {
		if (e->nalternatives == MAX_ALTERNATIVES)
			return wrong(r, r->line, "too many", line);
		e->alternative[e->nalternatives++] = copy_of(skip(line));
		return true;
	}
	if (r->nlines == MAX_LINES)
		return wrong(r, r->line, "too many lines", line);
	r->at[r->nlines] = r->line;
	r->body[r->nlines++] = copy_of(line[0] == ' ' ? skip(line) : line);
	return true;
}

bool forms_read(const char *path, void (*f)(void *arg, const struct forms_case *c), void *arg)
{
	struct reader *r = calloc(1, sizeof(*r));
	char line[MAX_LINE];
	FILE *file = fopen(path, "r");
	bool fine;

	if (!file) {
		perror(path);
		free(r);
		return false;
	}
	r->path = path;
	r->c = calloc(1, sizeof(*r->c));
	if (!r->c)
		abort();
	r->c->text = malloc(MAX_TEXT);
	r->c->vector = calloc(FORMS_MAX_VECTORS, sizeof(*r->c->vector));
	if (!r->c->text || !r->c->vector)
		abort();
	while (!r->failed && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		r->line++;
		take_line(r, line, f, arg);
	}
	finish(r, f, arg);
	fine = !r->failed;
	fclose(file);
	free(r->c->text);
	free(r->c->vector);
	free(r->c);
	free(r);
	return fine;
}
