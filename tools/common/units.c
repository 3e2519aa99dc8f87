/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/units.h"

#include <stdio.h>

const char *units_bytes(char text[UNITS_TEXT], uint64_t n)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 1024; u++)
		v /= 1024;
	snprintf(text, UNITS_TEXT, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return text;
}

const char *units_time(char text[UNITS_TEXT], uint64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double v = (double)ns;
	unsigned u = 0;

	for (; v >= 999.5 && u < 3; u++)
		v /= 1000;
	if (ns == 0)
		snprintf(text, UNITS_TEXT, "-");
	else
		snprintf(text, UNITS_TEXT, "%.*f %s",
			u == 0 || v >= 99.95 ? 0
			: v >= 9.995         ? 1
					     : 2,
			v, units[u]);
	return text;
}
