/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/lex.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void lex_begin(struct lex *l, const char *text, size_t size)
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

enum lex_token lex_next(struct lex *l)
{
	enum lex_token token = LEX_END;

	while (l->at < l->end && token == LEX_END)
		token = take(l);
	return token;
}

char *lex_include(const struct lex *l)
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
