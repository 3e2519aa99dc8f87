/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/public.h"

#include <stdarg.h>
#include <stdio.h>

int reddn_fail(int ret, char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	if (!err || !errlen)
		return ret;
	va_start(ap, fmt);
	vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return ret;
}
