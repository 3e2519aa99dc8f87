/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * units.h - sizes and times as people read them. Programs get exact numbers, as JSON.
 */
#ifndef TOOLS_COMMON_UNITS_H
#define TOOLS_COMMON_UNITS_H

#include <stdint.h>

enum { UNITS_TEXT = 32 };

/** 17 B, 4.0 MiB */
const char *units_bytes(char text[UNITS_TEXT], uint64_t n);
/** From nanoseconds, three digits: 850 ns, 8.30 us, 1.20 ms; "-" if it is 0 */
const char *units_time(char text[UNITS_TEXT], uint64_t ns);

#endif
