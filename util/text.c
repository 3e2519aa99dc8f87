/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_is_name(const char *s, size_t max)
{
	size_t n = strlen(s);

	if (n == 0 || n > max || !isalnum((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
			return false;
	return true;
}

enum { LONGEST = 32 };

/* Levenshtein distance of words of at most LONGEST characters */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > LONGEST || nb > LONGEST)
		return LONGEST;
	for (unsigned j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}

const char *text_nearest(const char *word, const char *const *words, size_t nwords)
{
	const char *nearest = NULL;
	unsigned least = (unsigned)strlen(word) / 2 + 1;

	for (size_t i = 0; i < nwords; i++) {
		/* The beginning of a name is a likely mistake, however long the rest. */
		unsigned d = strncmp(word, words[i], strlen(word)) == 0 ? 1 : distance(word, words[i]);

		if (d < least) {
			least = d;
			nearest = words[i];
		}
	}
	return nearest;
}

const char *text_hint(char hint[TEXT_HINT], const char *word, const char *const *words, size_t nwords,
	const char *otherwise)
{
	const char *near = text_nearest(word, words, nwords);

	if (!near)
		return otherwise;
	snprintf(hint, TEXT_HINT, "; did you mean \"%s\"?", near);
	return hint;
}

size_t text_utf8(const uint8_t *p, size_t len)
{
	uint32_t c = len ? p[0] : 0xff, more = c < 0x80   ? 0
					       : c < 0xc2 ? 9
					       : c < 0xe0 ? 1
					       : c < 0xf0 ? 2
					       : c < 0xf5 ? 3
							  : 9;

	if (more == 9 || more >= len)
		return 0;
	for (uint32_t k = 1; k <= more; k++)
		if ((p[k] & 0xc0) != 0x80)
			return 0;
	/* longer than needed, halves of UTF-16, and above U+10FFFF */
	if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
		(c == 0xf4 && p[1] > 0x8f))
		return 0;
	return more + 1;
}

char *text_as_utf8(const char *s)
{
	static const char unknown[] = "\xef\xbf\xbd";
	size_t len = strlen(s), n = 0;
	char *copy = malloc(len * (sizeof(unknown) - 1) + 1);

	for (size_t i = 0; copy && i < len;) {
		size_t bytes = text_utf8((const uint8_t *)s + i, len - i);

		memcpy(copy + n, bytes ? s + i : unknown, bytes ? bytes : sizeof(unknown) - 1);
		n += bytes ? bytes : sizeof(unknown) - 1;
		i += bytes ? bytes : 1;
	}
	if (copy)
		copy[n] = '\0';
	return copy;
}

/* C0, DEL, and C1 (U+0080 to U+009F) */
size_t text_control(const uint8_t *p, size_t len)
{
	if (len > 0 && (p[0] < ' ' || p[0] == 0x7f))
		return 1;
	return len > 1 && p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
}

char *text_clean(char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len;) {
		uint8_t *p = (uint8_t *)s + i;
		size_t bytes = text_utf8(p, len - i);

		if (!bytes || text_control(p, len - i)) {
			bytes = bytes ? bytes : 1;
			memset(p, '?', bytes);
		}
		i += bytes;
	}
	return s;
}

int text_why(int error, char *why, size_t size, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, size, format, ap);
	va_end(ap);
	return error;
}
