/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/scan.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DEEP = 10 }; /* MAX_INCLUDE_DEPTH of libconfig */

struct check {
	const char *dir;
	FILE *errors;
	unsigned nerrors;
	bool too_deep; /* libconfig stops there and reports it */
};

struct text {
	const char *path, *at, *end;
	unsigned line;
};

static void check_file(struct check *c, const char *path, unsigned depth);

static char *read_all(const char *path, size_t *size)
{
	CLEANUP(cleanup_close) int fd = file_open(path, O_RDONLY);
	CLEANUP(cleanup_free) char *text = NULL;
	struct stat st;
	long len;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	len = text ? file_read(fd, text, (size_t)st.st_size) : -ENOMEM;
	if (len < 0)
		return NULL;
	*size = (size_t)len;
	return steal_ptr(&text);
}

static void check_path(
	struct check *c, const struct text *t, const char *path, const char *name, unsigned depth)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	if (S_ISREG(st.st_mode)) {
		c->too_deep |= depth == MOST_DEEP;
		if (!c->too_deep)
			check_file(c, path, depth + 1);
		return;
	}
	fprintf(c->errors, "%s:%u: @include \"%s\" is no file but %s\n", t->path, t->line, name,
		S_ISDIR(st.st_mode) ? "a directory" : "something else");
	c->nerrors++;
}

/* Relative names start at the directory; with libconfig 1.5 absolute ones do, too */
static void check_name(struct check *c, const struct text *t, const char *name, unsigned depth)
{
	CLEANUP(cleanup_free) char *path = NULL;
	unsigned nerrors;

	if (asprintf(&path, "%s/%s", c->dir, name) < 0) {
		path = NULL;
		return;
	}
	nerrors = c->nerrors;
	check_path(c, t, path, name, depth);
	if (name[0] == '/' && c->nerrors == nerrors)
		check_path(c, t, name, name, depth);
}

static void skip(struct text *t, const char *set)
{
	while (t->at < t->end && *t->at && strchr(set, *t->at))
		t->at++;
}

/* Checks the rest of a line; a name in quotes may go on in the lines that follow */
static void check_line(struct check *c, struct text *t, unsigned depth)
{
	static const char word[] = "@include";
	const char *blanks;
	char *name, *to;

	skip(t, " \t");
	if ((size_t)(t->end - t->at) < strlen(word) || memcmp(t->at, word, strlen(word)) != 0)
		return;
	t->at += strlen(word);
	blanks = t->at;
	skip(t, " \t");
	if (t->at == blanks || t->at == t->end || *t->at++ != '"')
		return;
	to = name = malloc((size_t)(t->end - t->at) + 1);
	if (!name)
		return;
	for (; t->at < t->end && *t->at != '"'; t->at++) {
		if (*t->at == '\\' && t->end - t->at > 1 && (t->at[1] == '\\' || t->at[1] == '"'))
			t->at++;
		*to++ = *t->at;
	}
	*to = '\0';
	if (t->at < t->end)
		check_name(c, t, name, depth);
	free(name);
}

static void check_text(struct check *c, const char *path, const char *text, size_t size, unsigned depth)
{
	struct text t = {.path = path, .at = text, .end = text + size};
	const char *newline;

	for (t.line = 1; t.at < t.end && !c->too_deep; t.line++) {
		check_line(c, &t, depth);
		newline = memchr(t.at, '\n', (size_t)(t.end - t.at));
		t.at = newline ? newline + 1 : t.end;
	}
}

static void check_file(struct check *c, const char *path, unsigned depth)
{
	size_t size = 0;
	CLEANUP(cleanup_free) char *text = read_all(path, &size);

	if (text)
		check_text(c, path, text, size, depth);
}

DEFINE_CLEANUP(FILE *, fclose)

/* The text, without a zero byte in it; NULL: the reason is in @errors */
static char *read_main(const char *path, FILE *errors)
{
	CLEANUP(fclosep) FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t n = f ? getdelim(&text, &room, '\0', f) : -1;

	if (n < 0 && f && feof(f)) {
		free(text);
		return strdup("");
	}
	if (n >= 0 && strlen(text) == (size_t)n)
		return text;
	if (n < 0)
		fprintf(errors, "%s: cannot be read: %s\n", path, strerror(errno));
	else
		fprintf(errors, "%s: has a zero byte; a configuration is text\n", path);
	free(text);
	return NULL;
}

unsigned scan_configuration(const char *path, const char *dir, FILE *errors, char **text)
{
	struct check c = {.dir = dir, .errors = errors};

	*text = read_main(path, errors);
	if (!*text)
		return 1;
	check_text(&c, path, *text, strlen(*text), 0);
	return c.nerrors;
}
