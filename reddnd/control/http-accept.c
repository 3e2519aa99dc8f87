/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/http-accept.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WHOLE = 1000 };

/* The text at @at, up to one of the bytes in @ends, without spaces around it */
struct part {
	const char *at;
	size_t len;
};

static struct part part(const char **at, const char *ends)
{
	const char *from = *at + strspn(*at, " \t"), *to = from + strcspn(from, ends);
	struct part p = {from, (size_t)(to - from)};

	while (p.len && strchr(" \t", from[p.len - 1]))
		p.len--;
	*at = to;
	return p;
}

static bool is(struct part p, const char *word)
{
	return p.len == strlen(word) && strncasecmp(p.at, word, p.len) == 0;
}

/* "0.25" and the like; what is no weight is 0 */
static unsigned weight(struct part p)
{
	unsigned n = 0, scale = WHOLE;

	for (size_t i = 0; i < p.len && scale; i++) {
		if (p.at[i] == '.' && i == 1)
			continue;
		if (p.at[i] < '0' || p.at[i] > '9')
			return 0;
		n += (unsigned)(p.at[i] - '0') * scale;
		scale /= 10;
	}
	return n < WHOLE ? n : WHOLE;
}

/* How specific a range is that has the type; 0: it has it not */
static unsigned matches(
	struct part range_type, struct part range_subtype, const char *type, const char *subtype)
{
	if (is(range_type, "*") && is(range_subtype, "*"))
		return 1;
	if (!is(range_type, type))
		return 0;
	if (is(range_subtype, "*"))
		return 2;
	return is(range_subtype, subtype) ? 3 : 0;
}

unsigned http_accept_weight(const char *accept, const char *type, const char *subtype)
{
	unsigned best = 0, found = 0;

	if (!accept || !*accept)
		return WHOLE;
	while (*accept) {
		struct part t = part(&accept, "/,;"), s = {accept, 0};
		unsigned q = WHOLE, match;

		if (*accept == '/') {
			accept++;
			s = part(&accept, ",;");
		}
		match = matches(t, s, type, subtype);
		while (*accept == ';') {
			struct part name;

			accept++;
			name = part(&accept, "=,;");
			if (*accept != '=')
				continue;
			accept++;
			t = part(&accept, ",;");
			if (is(name, "q"))
				q = weight(t);
		}
		if (match > best || (match && match == best && q > found)) {
			best = match;
			found = q;
		}
		accept += *accept == ',';
	}
	return found;
}
