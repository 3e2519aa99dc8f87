/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/tool.h"

#include "util/cleanup.h"
#include "util/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tool_complain(const char *fmt, ...)
{
	CLEANUP(cleanup_free) char *words = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&words, fmt, ap) < 0)
		words = NULL;
	va_end(ap);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
		words ? text_clean(words) : strerror(ENOMEM));
	return 2;
}

void *tool_must(void *memory)
{
	if (!memory)
		exit(tool_complain("out of memory"));
	return memory;
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
