/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/line.h"

#include <stdarg.h>
#include <stdio.h>

void chain_line_add(struct chain_line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->used, l->size - l->used, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->used = (size_t)n < l->size - l->used ? l->used + (size_t)n : l->size - 1;
}
