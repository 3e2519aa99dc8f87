/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/lex.h"

#include "reddnd/program/front/limits.h"
#include "reddnd/program/front/pool.h"

#include <stdio.h>
#include <string.h>

struct lexer {
	struct pool *pool;
	struct diag *d;
	const char *at, *end, *bol;
	unsigned line;
	struct lex_token *token;
	size_t n;
};

static const struct {
	char text[3];
	uint8_t kind;
} PAIRS[] = {{"->", LEX_ARROW}, {"..", LEX_RANGE}, {"==", LEX_EQ}, {"!=", LEX_NE}, {"<=", LEX_LE},
	{">=", LEX_GE}, {"<<", LEX_SHL}, {">>", LEX_SHR}, {"&&", LEX_AND}, {"||", LEX_OR}};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static struct diag_pos here(const struct lexer *l, size_t len)
{
	return (struct diag_pos){l->line, (unsigned)(l->at - l->bol) + 1, (unsigned)len};
}

static struct lex_token *emit(struct lexer *l, uint8_t kind, size_t len)
{
	struct lex_token *t;

	pool_grow(l->pool, l->token, l->n);
	t = &l->token[l->n++];
	*t = (struct lex_token){.kind = kind, .pos = here(l, len)};
	l->at += len;
	return t;
}

static void newline(struct lexer *l)
{
	if (l->n && l->token[l->n - 1].kind != LEX_NEWLINE)
		emit(l, LEX_NEWLINE, 0);
}

/* Letters and digits of whatever case at the current place */
static size_t run(const struct lexer *l)
{
	size_t n = 0;

	while (l->at + n < l->end && (is_word(l->at[n]) || is_upper(l->at[n])))
		n++;
	return n;
}

static int digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static void number(struct lexer *l)
{
	size_t len = run(l), i = 0, first;
	unsigned base = 10, shift = 0;
	uint64_t value = 0;
	bool large = false;

	if (len > 2 && l->at[0] == '0' && (l->at[1] == 'x' || l->at[1] == 'b')) {
		base = l->at[1] == 'x' ? 16 : 2;
		i = 2;
	}
	first = i;
	for (; i < len && digit(l->at[i]) < (int)base; i++) {
		large |= __builtin_mul_overflow(value, base, &value);
		large |= __builtin_add_overflow(value, (uint64_t)digit(l->at[i]), &value);
	}
	if (i > first && i + 1 == len) {
		const char *suffix = strchr("KMG", l->at[i]);

		if (suffix && *suffix) {
			shift = (unsigned)(*suffix == 'K' ? 10 : *suffix == 'M' ? 20 : 30);
			i++;
		}
	}
	if (i == first || i < len) {
		diag_error(l->d, SYNTAX, here(l, len),
			"\"%.*s\" is not a number; write 10, 0x1f, 0b101 or 64K (K, M and G are powers of "
			"1024)",
			(int)(len > 40 ? 40 : len), l->at);
		emit(l, LEX_BAD, len);
		return;
	}
	large |= value << shift >> shift != value;
	if (large)
		diag_error(l->d, VALUE, here(l, len), "the number does not fit into 64 bits");
	emit(l, large ? LEX_BAD : LEX_NUMBER, len)->number = value << shift;
}

static void word(struct lexer *l)
{
	size_t len = run(l);
	const char *text = l->at;
	struct lex_token *t;

	for (size_t i = 0; i < len; i++) {
		if (!is_upper(text[i]))
			continue;
		diag_error(l->d, SYNTAX, here(l, len),
			"\"%.*s\" has a capital letter; names consist of a-z, 0-9 and _",
			(int)(len > 40 ? 40 : len), text);
		emit(l, LEX_BAD, len);
		return;
	}
	if (len > PROGRAM_MAX_NAME) {
		diag_error(l->d, LIMIT, here(l, len), "the name has %zu characters; it may have %d", len,
			PROGRAM_MAX_NAME);
		emit(l, LEX_BAD, len);
		return;
	}
	t = emit(l, LEX_WORD, len);
	t->word = pool_copy(l->pool, text, len);
}

static void strange(struct lexer *l)
{
	unsigned char c = (unsigned char)*l->at;
	size_t len = 1;

	if (c >= 0x80) {
		while (l->at + len < l->end && ((unsigned char)l->at[len] & 0xc0) == 0x80 && len < 4)
			len++;
		diag_error(l->d, SYNTAX, here(l, 1), "a character outside ASCII; only comments may have one");
	} else if (c < ' ' || c == 0x7f) {
		diag_error(l->d, SYNTAX, here(l, 1),
			"a control character (byte 0x%02x); a program is plain text", c);
	} else if (c == '"' || c == '\'') {
		diag_error(l->d, SYNTAX, here(l, 1), "there are no strings or characters; write the number");
	} else if (c == ';') {
		diag_error(l->d, SYNTAX, here(l, 1), "a statement ends with its line, without \";\"");
	} else {
		diag_error(l->d, SYNTAX, here(l, 1), "\"%c\" means nothing here", c);
	}
	emit(l, LEX_BAD, len);
}

static void punctuation(struct lexer *l)
{
	for (size_t i = 0; i < sizeof(PAIRS) / sizeof(PAIRS[0]); i++) {
		if (l->end - l->at >= 2 && !memcmp(l->at, PAIRS[i].text, 2)) {
			emit(l, PAIRS[i].kind, 2);
			return;
		}
	}
	if (*l->at && strchr("{}()[],:.@=+-*/%&|~<>", *l->at))
		emit(l, (uint8_t)*l->at, 1);
	else
		strange(l);
}

struct lex_token *lex(struct pool *p, struct diag *d, const char *text, size_t len)
{
	struct lexer l = {.pool = p, .d = d, .at = text, .end = text + len, .bol = text, .line = 1};

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) /* byte order mark */
		l.at += 3;
	while (l.at < l.end) {
		if (*l.at == '\n') {
			newline(&l);
			l.at++;
			l.line++;
			l.bol = l.at;
		} else if (*l.at == ' ' || *l.at == '\t' ||
			   (*l.at == '\r' && l.at + 1 < l.end && l.at[1] == '\n')) {
			l.at++;
		} else if (*l.at == '#') {
			const char *eol = memchr(l.at, '\n', (size_t)(l.end - l.at));

			l.at = eol ? eol : l.end;
		} else if (is_digit(*l.at)) {
			number(&l);
		} else if (is_word(*l.at) || is_upper(*l.at)) {
			word(&l);
		} else {
			punctuation(&l);
		}
	}
	newline(&l);
	emit(&l, LEX_END, 0);
	return l.token;
}

const char *lex_name(const struct lex_token *t)
{
	static _Thread_local char names[2][PROGRAM_MAX_NAME + 3];
	static _Thread_local unsigned next;
	char *name = names[next++ % 2];

	if (t->kind == LEX_END)
		return "the end of the file";
	if (t->kind == LEX_NEWLINE)
		return "the end of the line";
	if (t->kind == LEX_NUMBER)
		return "a number";
	if (t->kind == LEX_WORD) {
		snprintf(name, sizeof(names[0]), "\"%s\"", t->word);
		return name;
	}
	for (size_t i = 0; i < sizeof(PAIRS) / sizeof(PAIRS[0]); i++) {
		if (PAIRS[i].kind == t->kind) {
			snprintf(name, sizeof(names[0]), "\"%s\"", PAIRS[i].text);
			return name;
		}
	}
	snprintf(name, sizeof(names[0]), "\"%c\"", t->kind);
	return name;
}
