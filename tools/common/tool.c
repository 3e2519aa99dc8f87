/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tool_complain(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 2;
}

static bool parse(const char *s, char **end, uint64_t *out)
{
	errno = 0;
	*out = strtoull(s, end, 0);
	return *end != s && *s != '-' && !errno;
}

bool tool_number(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	return parse(s, &end, out) && !*end && *out >= min && *out <= max;
}

bool tool_size(const char *s, uint64_t max, uint64_t *out)
{
	const char *units = "KMG";
	unsigned shift = 0;
	char *end;

	if (!parse(s, &end, out))
		return false;
	if (*end) {
		const char *u = strchr(units, *end);

		if (!u || end[1])
			return false;
		shift = 10 * (unsigned)(u - units + 1);
	}
	if (*out > max >> shift)
		return false;
	*out <<= shift;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tool_bytes(const char *s, uint8_t *out, size_t len)
{
	size_t n = strlen(s);

	memset(out, 0, len);
	if (strncmp(s, "hex:", 4) != 0) {
		memcpy(out, s, n < len ? n : len);
		return n <= len;
	}
	for (size_t i = 0; i + 4 < n; i += 2) {
		int hi = hex_digit(s[4 + i]), lo = hex_digit(s[5 + i]);

		if (hi < 0 || lo < 0 || i / 2 >= len)
			return false;
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return true;
}
