/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - names, hexadecimal digits, UTF-8, words of peers, reasons in words, and suggestions for misspelt
 * words.
 */
#ifndef UTIL_TEXT_H
#define UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** True for 1 to @max characters of a-z, A-Z, 0-9, '.', '_' and '-', the first one a letter or a digit. */
bool text_is_name(const char *s, size_t max);

/** The word of @words that differs least from @word, or NULL if none resembles it. */
const char *text_nearest(const char *word, const char *const *words, size_t nwords);

enum { TEXT_HINT = 80 };

/** The end of a message about @word: "; did you mean \"X\"?" with that word, or @otherwise. */
const char *text_hint(char hint[TEXT_HINT], const char *word, const char *const *words, size_t nwords,
	const char *otherwise);

/** Bytes of the character of UTF-8 at @p, which has @len bytes; 0: there is none. */
size_t text_utf8(const uint8_t *p, size_t len);

/** Bytes of the control character at @p, which has @len bytes; 0: another one is there, or none. These are
 * C0, DEL, and C1, which UTF-8 has in two bytes: a terminal may obey all of them. */
size_t text_control(const uint8_t *p, size_t len);

/** A copy of @s with U+FFFD for each byte that is not UTF-8; the caller frees it. NULL: no memory. */
char *text_as_utf8(const char *s);

/** Puts '?' in the place of each control character, and of each byte that is not UTF-8. Words of a peer are
 * kept so: they are printed to terminals, and written to logs and JSON. Returns @s. */
char *text_clean(char *s);

/** Puts a reason in words into @why, of @size bytes; what does not fit is cut. Returns @error. */
int text_why(int error, char *why, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** Value of a hexadecimal digit, -1 for other characters. */
static inline int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
