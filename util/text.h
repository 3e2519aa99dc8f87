/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - names, and suggestions for words that are misspelt.
 */
#ifndef UTIL_TEXT_H
#define UTIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** 1 to @max characters of a-z, A-Z, 0-9, '.', '_' and '-', the first one a letter or a digit. */
bool text_is_name(const char *s, size_t max);

/** The word of @words that differs least from @word, or NULL when none resembles it. */
const char *text_nearest(const char *word, const char *const *words, size_t nwords);

enum { TEXT_HINT = 80 };

/** "; did you mean \"X\"?" with that word, or @otherwise: what to put behind a message about @word. */
const char *text_hint(char hint[TEXT_HINT], const char *word, const char *const *words, size_t nwords,
	const char *otherwise);

#endif
