/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/number.h"

#include "util/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Parse the digits at the beginning of @s; *rest is the text behind them. */
static int digits(const char *s, uint64_t *value, const char **rest)
{
	int base = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(s, &end, base);
	*rest = end;
	return errno ? -ERANGE : 0;
}

int number_parse(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *rest;
	uint64_t v;
	int r = digits(s, &v, &rest);

	if (r == -EINVAL || (r == 0 && *rest))
		return -EINVAL;
	if (r < 0 || v < min || v > max)
		return -ERANGE;
	*out = v;
	return 0;
}

int number_parse_decimal(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	return strchr(s, 'x') || strchr(s, 'X') ? -EINVAL : number_parse(s, min, max, out);
}

int number_parse_size(const char *s, uint64_t max, uint64_t *out)
{
	static const char units[] = "KMG";
	const char *rest, *unit;
	unsigned shift = 0;
	uint64_t v;
	int r = digits(s, &v, &rest);

	if (r == -EINVAL)
		return -EINVAL;
	if (*rest) {
		unit = strchr(units, *rest);
		if (!unit || (rest[1] && strcmp(rest + 1, "iB") != 0))
			return -EINVAL;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	if (r < 0 || v > max >> shift)
		return -ERANGE;
	*out = v << shift;
	return 0;
}

int number_parse_duration(const char *s, uint64_t *us)
{
	static const struct {
		const char *name;
		uint64_t us;
	} units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};
	const uint64_t most = 30 * 24 * 3600000000ull;
	const char *rest;
	uint64_t v;
	int r = digits(s, &v, &rest);

	if (r < 0)
		return r;
	for (size_t i = 0; i < COUNT(units); i++)
		if (strcmp(rest, units[i].name) == 0) {
			if (v > most / units[i].us)
				return -ERANGE;
			*us = v * units[i].us;
			return 0;
		}
	return -EINVAL;
}
