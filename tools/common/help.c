/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/help.h"

#include "tools/common/tool.h"
#include "util/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SUBCOMMANDS = 32 };

static const struct subcommand *subcommands_at(const struct subcommands *s, size_t i)
{
	return (const struct subcommand *)((const char *)s->table + i * s->size);
}

const void *subcommands_find(const struct subcommands *s, const char *name)
{
	const char *names[MAX_SUBCOMMANDS];
	char hint[TEXT_HINT], list[40];

	assert(s->n <= MAX_SUBCOMMANDS);
	for (size_t i = 0; i < s->n; i++) {
		names[i] = subcommands_at(s, i)->name;
		if (strcmp(name, names[i]) == 0)
			return subcommands_at(s, i);
	}
	snprintf(list, sizeof(list), "; %s --help lists them", s->tool);
	tool_complain("there is no command \"%s\"%s", name, text_hint(hint, name, names, s->n, list));
	return NULL;
}

void subcommands_list(const struct subcommands *s, int width)
{
	size_t longest = 0;

	for (size_t i = 0; i < s->n; i++)
		if (strlen(subcommands_at(s, i)->name) > longest)
			longest = strlen(subcommands_at(s, i)->name);
	for (size_t i = 0; i < s->n; i++)
		printf("  %-*s %-*s %s\n", (int)longest, subcommands_at(s, i)->name, width,
			subcommands_at(s, i)->args ? subcommands_at(s, i)->args : "",
			subcommands_at(s, i)->help);
}

/* What follows "usage: " or the same number of blanks; NULL: it is no line of usage */
static const char *usage_of(const char *line)
{
	if (strncmp(line, "usage: ", 7) == 0)
		return line + 7;
	return strncmp(line, "       ", 7) == 0 && !isspace((unsigned char)line[7]) ? line + 7 : NULL;
}

static bool begins(const char *text, const char *word)
{
	size_t n = strlen(word);

	return strncmp(text, word, n) == 0 && strchr(" :\n", text[n]);
}

/* True of "TOOL VERB ..." */
static bool is_usage(const char *usage, const struct help_verb *v)
{
	size_t n = strlen(v->tool);

	return begins(usage, v->tool) && begins(usage + n + 1, v->verb);
}

/* The letter of "  -o, --option ..."; 0: it is no line of an option */
static char letter_of(const char *line)
{
	return strncmp(line, "  -", 3) == 0 && line[3] != '-' ? line[3] : 0;
}

/* True of "VERB: ..." */
static bool is_heading(const char *line)
{
	size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz-");

	return n && line[n] == ':' && strncmp(line, "usage", 5) != 0;
}

static void print_line(FILE *f, const char *before, const char *line)
{
	fprintf(f, "%s%.*s\n", before, (int)strcspn(line, "\n"), line);
}

/* Blanks that align verbs in the usage of all are one */
static void print_usage(FILE *f, const char *usage)
{
	fputs("usage: ", f);
	for (; *usage && *usage != '\n'; usage++)
		if (usage[0] != ' ' || usage[1] != ' ')
			fputc(*usage, f);
	fputc('\n', f);
}

void help_usage(FILE *f, const char *text, const struct help_verb *v)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *usage = usage_of(line);

		if (usage && is_usage(usage, v))
			print_usage(f, usage);
	}
}

void help_verb(FILE *f, const char *text, const struct help_verb *v)
{
	const char *own = "";
	bool elsewhere = false, first = true;

	help_usage(f, text, v);
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (is_heading(line) && begins(line, v->verb) && !*own)
			own = line;
	}
	if (*own)
		print_line(f, "\n", own);
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char letter = letter_of(line);

		if (is_heading(line))
			elsewhere = !begins(line, v->verb);
		else if (letter && !elsewhere && strchr(v->letters, letter)) {
			print_line(f, first ? "\n" : "", line);
			first = false;
		}
	}
}

/* Where @verb stands before the words of the option, alone or in a list; NULL: nowhere */
static const char *find_verb(const char *line, size_t len, const char *verb)
{
	size_t n = strlen(verb);

	for (const char *p = line; p + n + 2 < line + len; p++)
		if (*p == ' ' && strncmp(p + 1, verb, n) == 0 &&
			(strncmp(p + 1 + n, ": ", 2) == 0 || strncmp(p + 1 + n, ", ", 2) == 0))
			return p + 1;
	return NULL;
}

/* Prints the lines of options in @text that are of @verb: those that have no verbs before their words, as in
 * "  -f, --follow  audit: words", and those that have it there, without it. */
static void help_options(FILE *f, const char *text, const struct subcommands *s, const char *verb)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n");
		const char *list = NULL, *at;

		if (!letter_of(line))
			continue;
		for (size_t i = 0; i < s->n; i++) {
			at = find_verb(line, len, subcommands_at(s, i)->name);
			if (at && (!list || at < list))
				list = at;
		}
		if (!list)
			print_line(f, "", line);
		else if (find_verb(line, len, verb))
			fprintf(f, "%.*s%.*s\n", (int)(list - line), line,
				(int)(line + len - (strstr(list, ": ") + 2)), strstr(list, ": ") + 2);
	}
}

void help_examples(FILE *f, const char *examples)
{
	if (examples)
		fprintf(f, "\nExamples:\n%s", examples);
}

void help_subcommand(const struct subcommands *s, const struct subcommand *c, const char *text)
{
	printf("usage: %s [OPTIONS] %s%s%s\n\n%s: %s\n\n", s->tool, c->name, c->args ? " " : "",
		c->args ? c->args : "", c->name, c->help);
	help_options(stdout, text, s, c->name);
	help_examples(stdout, c->examples);
}
