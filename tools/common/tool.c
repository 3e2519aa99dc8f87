/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/tool.h"

#include "util/text.h"

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

bool tool_bytes(const char *s, uint8_t *out, size_t len)
{
	size_t n = strlen(s);

	memset(out, 0, len);
	if (strncmp(s, "hex:", 4) != 0) {
		memcpy(out, s, n < len ? n : len);
		return n <= len;
	}
	for (size_t i = 0; i + 4 < n; i += 2) {
		int hi = text_hex_digit(s[4 + i]), lo = text_hex_digit(s[5 + i]);

		if (hi < 0 || lo < 0 || i / 2 >= len)
			return false;
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return true;
}
