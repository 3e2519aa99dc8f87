/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/check.h"

#include <stdarg.h>
#include <stdio.h>

int probe_denies(struct probe_result *result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->words, sizeof(result->words), format, ap);
	va_end(ap);
	return 0;
}

int probe_cannot(struct probe_result *result, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->words, sizeof(result->words), format, ap);
	va_end(ap);
	return error;
}

int probe_measured(struct probe_result *result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->measured, sizeof(result->measured), format, ap);
	va_end(ap);
	return 1;
}
