/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/text.h"

#include <ctype.h>
#include <stdio.h>
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
