/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Finds includes, integers, and what versions of libconfig read differently in the text of a configuration,
 * where their scanners find them (lib/scanner.l of 1.5, 1.7 and 1.8), so not in comments, strings, names and
 * fractions.
 */

enum lex_token {
	LEX_END,
	LEX_INCLUDE,
	LEX_INTEGER,
	/* A string, a comment or the name of an include, which has no end in this text; a comment of # or //
	 * with a line feed, as 1.5 has it */
	LEX_OPEN,
	LEX_BASE,   /* an integer with 0b, 0o or 0q in front, from 1.8 on */
	LEX_COMMA,  /* before the end of an array or a list, from 1.7 on */
	LEX_ESCAPE, /* \a, \b or \v in a string, from 1.8 on; before that its two characters */
};

struct lex {
	const char *begin, *at, *end;
	unsigned line;  /* of @at, from 1 */
	unsigned comma; /* line of a comma that nothing but blanks and comments follow; 0: there is none */
	/* Of the token: an integer, from its sign to its last digit, without a suffix; what is read
	 * differently; or the name of an include as it is written, from behind its quote to that at its end
	 */
	const char *token;
	size_t len;
	unsigned token_line;
	const char *name; /* that stands before the token, name_len characters; NULL: none */
	size_t name_len;
	unsigned suffix; /* letters L behind the integer: 0 to 2 */
};

/* Begins with @size bytes of @text, which are borrowed; a zero byte follows them. */
static void lex_begin(struct lex *l, const char *text, size_t size)
{
	*l = (struct lex){.begin = text, .at = text, .end = text + size, .line = 1};
}

static void go_to(struct lex *l, const char *to)
{
	for (; l->at < to; l->at++)
		l->line += *l->at == '\n';
}

/* False: there is no @end */
static bool go_behind(struct lex *l, const char *end)
{
	const char *found = memmem(l->at, (size_t)(l->end - l->at), end, strlen(end));

	go_to(l, found ? found + strlen(end) : l->end);
	return found;
}

/* Takes what begins behind a quote, as the token, and the quote that ends it. False: there is none */
static bool take_quoted(struct lex *l)
{
	const char *p = l->at;

	while (p < l->end && *p != '"')
		p += *p == '\\' && l->end - p > 1 ? 2 : 1;
	l->token = l->at;
	l->len = (size_t)(p - l->at);
	go_to(l, p);
	return go_behind(l, "\"");
}

static bool starts(const struct lex *l, const char *word)
{
	return (size_t)(l->end - l->at) >= strlen(word) && memcmp(l->at, word, strlen(word)) == 0;
}

static const char *behind_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* The bytes behind the text are zeros, which are no part of anything */
static const char *behind_digits(const char *p, bool hex)
{
	while (hex ? isxdigit((unsigned char)*p) : isdigit((unsigned char)*p))
		p++;
	return p;
}

/* At the beginning of a line: blanks, @include, blanks, a quote. Takes them */
static bool begins_include(struct lex *l)
{
	static const char word[] = "@include";
	const char *from = l->at, *p = behind_blanks(from), *blanks;

	if ((from != l->begin && from[-1] != '\n') || strncmp(p, word, strlen(word)) != 0)
		return false;
	blanks = p + strlen(word);
	p = behind_blanks(blanks);
	if (p == blanks || *p != '"')
		return false;
	go_to(l, p + 1);
	return true;
}

static void take_name(struct lex *l)
{
	const char *p = l->at;

	while (isalnum((unsigned char)*p) || (*p && strchr("*-_", *p)))
		p++;
	l->name = l->at;
	l->name_len = (size_t)(p - l->at);
	go_to(l, p);
}

static bool begins_number(const struct lex *l)
{
	const char *p = l->at;

	return isdigit((unsigned char)p[*p == '-' || *p == '+']);
}

/* Takes 0b101. False: it is none */
static bool take_base(struct lex *l)
{
	const char *p = l->at;

	if (p[0] != '0' || !p[1] || !strchr("bBoOqQ", p[1]) || !isdigit((unsigned char)p[2]))
		return false;
	l->token = p;
	while (isalnum((unsigned char)*p))
		p++;
	l->len = (size_t)(p - l->token);
	go_to(l, p);
	return true;
}

/* Behind a string. Makes the escape in it the token. False: it has none that is read differently */
static bool find_escape(struct lex *l)
{
	const char *end = l->token + l->len;

	for (const char *p = l->token; p + 1 < end; p++) {
		if (*p != '\\')
			continue;
		if (p[1] && strchr("abv", p[1])) {
			l->token = p;
			l->len = 2;
			return true;
		}
		p++;
	}
	return false;
}

/* False: it is the whole part of a fraction, which '.' follows */
static bool take_integer(struct lex *l)
{
	const char *p = l->at, *end;
	bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && isxdigit((unsigned char)p[2]);

	end = behind_digits(p + (hex ? 2 : *p == '-' || *p == '+'), hex);
	l->token = p;
	l->len = (size_t)(end - p);
	l->suffix = 0;
	while (l->suffix < 2 && end[l->suffix] == 'L')
		l->suffix++;
	go_to(l, end + l->suffix);
	return hex || l->suffix || *end != '.';
}

static bool is_comment(const struct lex *l)
{
	return *l->at == '#' || starts(l, "//") || starts(l, "/*");
}

static enum lex_token take_comment(struct lex *l)
{
	const char *end = "\n";

	if (starts(l, "/*")) {
		l->at += 2;
		end = "*/";
	}
	return go_behind(l, end) ? LEX_END : LEX_OPEN;
}

static enum lex_token take_string(struct lex *l)
{
	l->at++;
	if (!take_quoted(l))
		return LEX_OPEN;
	return find_escape(l) ? LEX_ESCAPE : LEX_END;
}

static enum lex_token take_number(struct lex *l)
{
	if (take_base(l))
		return LEX_BASE;
	return take_integer(l) ? LEX_INTEGER : LEX_END;
}

/* One character; one that ends a list, behind a comma */
static enum lex_token take_mark(struct lex *l, unsigned comma)
{
	bool ends = *l->at == ']' || *l->at == ')';

	if (*l->at == ',')
		l->comma = l->line;
	if (ends && comma)
		l->token_line = comma;
	go_to(l, l->at + 1);
	return ends && comma ? LEX_COMMA : LEX_END;
}

/* LEX_END: it is nothing that is looked for */
static enum lex_token take(struct lex *l)
{
	unsigned comma = l->comma;

	l->token_line = l->line;
	if (begins_include(l))
		return take_quoted(l) ? LEX_INCLUDE : LEX_OPEN;
	if (is_comment(l))
		return take_comment(l);
	if (isspace((unsigned char)*l->at)) {
		go_to(l, l->at + 1);
		return LEX_END;
	}
	l->comma = 0;
	if (begins_number(l))
		return take_number(l);
	if (*l->at == '"')
		return take_string(l);
	if (isalpha((unsigned char)*l->at) || *l->at == '*')
		take_name(l);
	else if (*l->at == '.')
		go_to(l, behind_digits(l->at + 1, false));
	else
		return take_mark(l, comma);
	return LEX_END;
}

/* The next token; LEX_END for ever when there is none. */
static enum lex_token lex_next(struct lex *l)
{
	enum lex_token token = LEX_END;

	while (l->at < l->end && token == LEX_END)
		token = take(l);
	return token;
}

/* The name of the include that lex_next() has found, to be freed; NULL: no memory. */
static char *lex_include(const struct lex *l)
{
	char *name = malloc(l->len + 1), *to = name;

	if (!name)
		return NULL;
	for (size_t i = 0; i < l->len; i++) {
		const char *c = &l->token[i];

		if (*c == '\\' && i + 1 < l->len && (c[1] == '\\' || c[1] == '"'))
			i++;
		*to++ = l->token[i];
	}
	*to = '\0';
	return name;
}

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
