/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/text.h"

#include <ctype.h>
#include <errno.h>
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

int text_parse_size(const char *s, uint64_t *size)
{
	unsigned long long v;
	unsigned shift = 0;
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -ERANGE;
	switch (*end) {
	case 'G':
		shift += 10; /* fall through */
	case 'M':
		shift += 10; /* fall through */
	case 'K':
		shift += 10;
		end++;
	}
	if (*end)
		return -EINVAL;
	if (v > (UINT64_MAX >> 1) >> shift)
		return -ERANGE;
	*size = v << shift;
	return 0;
}

int text_parse_duration(const char *s, uint64_t *us)
{
	static const struct {
		const char *name;
		uint64_t us;
	} units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};
	const uint64_t most = 30 * 24 * 3600000000ull;
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -ERANGE;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(end, units[i].name) == 0) {
			if (v > most / units[i].us)
				return -ERANGE;
			*us = v * units[i].us;
			return 0;
		}
	return -EINVAL;
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
		/* Half a name is a likely mistake, however long the other half */
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
