/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/scan.h"

#include "reddnd/catalog/lex.h"
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DEEP = 10 }; /* MAX_INCLUDE_DEPTH of libconfig */

struct check {
	const char *dir;
	FILE *errors;
	unsigned nerrors;
	bool too_deep; /* libconfig stops there, and so does this */
};

/* Where a mistake is */
struct place {
	const char *path;
	unsigned line;
};

static int check_file(struct check *c, const char *path, unsigned depth);

static int read_all(const char *path, char **all, size_t *size)
{
	CLEANUP(cleanup_close) int fd = file_open(path, O_RDONLY);
	CLEANUP(cleanup_free) char *text = NULL;
	struct stat st;
	long len;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	text = malloc((size_t)st.st_size + 1);
	len = text ? file_read(fd, text, (size_t)st.st_size) : -ENOMEM;
	if (len < 0)
		return (int)len;
	text[len] = '\0';
	*size = (size_t)len;
	*all = steal_ptr(&text);
	return 0;
}

static void __attribute__((format(printf, 3, 4)))
wrong(struct check *c, const struct place *at, const char *format, ...)
{
	CLEANUP(cleanup_free) char *text = NULL;
	va_list ap;

	c->nerrors++;
	fprintf(c->errors, "%s:%u: ", at->path, at->line);
	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	settings_put_line(c->errors, text ? text : format);
}

/* 0; -errno: there is no such file, or it may not be read */
static int check_path(
	struct check *c, const struct place *at, const char *path, const char *name, unsigned depth)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		wrong(c, at, "@include \"%s\" is no file but %s", name,
			S_ISDIR(st.st_mode) ? "a directory" : "something else");
		return 0;
	}
	c->too_deep = depth == MOST_DEEP;
	if (!c->too_deep)
		return check_file(c, path, depth + 1);
	wrong(c, at, "@include \"%s\" is in the %dth file that includes another; does one include itself?",
		name, MOST_DEEP + 1);
	return 0;
}

/* Before 1.7, libconfig lets absolute names start at the directory, too */
#define ALL_START_AT_DIR (LIBCONFIG_VER_MAJOR == 1 && LIBCONFIG_VER_MINOR < 7)

static void check_include(struct check *c, const struct place *at, const char *name, unsigned depth)
{
	const bool absolute = name[0] == '/';
	CLEANUP(cleanup_free) char *path = NULL;
	struct stat st;
	int r;

	if (asprintf(&path, "%s/%s", c->dir, name) < 0) {
		path = NULL;
		return;
	}
	r = check_path(c, at, absolute && !ALL_START_AT_DIR ? name : path, name, depth);
	if (r == 0)
		return;
	if (absolute && ALL_START_AT_DIR && stat(name, &st) == 0)
		wrong(c, at, "@include \"%s\": libconfig %d.%d looks for %s; write a relative name", name,
			LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR, path);
	else
		wrong(c, at, "@include \"%s\" cannot be read: %s", name, file_error(r));
}

/* What versions of libconfig read differently: 1.5 reads an integer without a suffix as an int, and takes the
 * bits of it that fit; 1.6 to 1.8.0 read one that begins with 0 as octal; 1.8 makes a hexadecimal one of 32
 * bits negative, with a suffix too. The same text shall be right with all. */
static void check_integer(struct check *c, const struct place *at, const struct lex *l)
{
	const int name_len = (int)l->name_len, len = (int)l->len;
	const char *name = l->name ? l->name : "";
	const char *number = l->token + (*l->token == '-' || *l->token == '+');
	bool hex = l->len > 2 && (l->token[1] == 'x' || l->token[1] == 'X');
	long long v;

	errno = 0;
	v = strtoll(l->token, NULL, hex ? 16 : 10);
	if (errno == ERANGE)
		wrong(c, at, "\"%.*s\" is %.*s, which 64 bits cannot hold; the largest number is %lld",
			name_len, name, len, l->token, LLONG_MAX);
	else if (!hex && *number == '0' && number < l->token + len - 1)
		wrong(c, at,
			"\"%.*s\" is %.*s, which some versions of libconfig read as octal; write it as %lld",
			name_len, name, len, l->token, v);
	else if ((!l->suffix && (v < INT_MIN || v > INT_MAX)) || (hex && v > INT_MAX && v <= UINT_MAX))
		wrong(c, at,
			"\"%.*s\" is %.*s, which a signed integer of 32 bits cannot hold; write it as %lldL",
			name_len, name, len, l->token, v);
}

static void check_text(struct check *c, const char *path, const char *text, size_t size, unsigned depth)
{
	enum lex_token token;
	struct lex l;

	if (size > 2 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		wrong(c, &(struct place){path, 1},
			"the file begins with a byte order mark (ef bb bf); remove it");
		text += 3;
		size -= 3;
	}
	lex_begin(&l, text, size);
	while (!c->too_deep && (token = lex_next(&l)) != LEX_END) {
		const struct place at = {path, l.token_line};
		CLEANUP(cleanup_free) char *name = token == LEX_INCLUDE ? lex_include(&l) : NULL;

		if (token == LEX_INTEGER)
			check_integer(c, &at, &l);
		else if (token == LEX_BASE)
			wrong(c, &at,
				"\"%.*s\" is %.*s; write a decimal number, or a hexadecimal one as 0x1f",
				(int)l.name_len, l.name ? l.name : "", (int)l.len, l.token);
		else if (token == LEX_ESCAPE)
			wrong(c, &at,
				"a text has %.*s; write a control character as \\x07, a backslash as \\\\",
				(int)l.len, l.token);
		else if (token == LEX_COMMA)
			wrong(c, &at, "a comma with nothing behind it in its list; leave it out");
		else if (token == LEX_OPEN)
			wrong(c, &at,
				"a text or a comment begins here and does not end in this file; one of # or "
				"// ends with a line feed");
		else if (name)
			check_include(c, &at, name, depth);
	}
}

/* 0, or the error of file_open() */
static int check_file(struct check *c, const char *path, unsigned depth)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t size = 0;
	int r = read_all(path, &text, &size);

	if (r == 0)
		check_text(c, path, text, size, depth);
	return r;
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
