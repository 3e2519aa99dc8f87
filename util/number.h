/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * number.h - numbers, sizes and durations from text. One parser for configuration, command lines and sockets.
 *
 * All of the text must be the number: no blanks, no sign. On an error *out is unchanged.
 */
#ifndef UTIL_NUMBER_H
#define UTIL_NUMBER_H

#include <stdint.h>

/** Decimal, 0x hexadecimal or 0 octal. 0; -EINVAL: not a number; -ERANGE: not from @min to @max. */
int number_parse(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/** The same, decimal only: a 0 in front, which some readers take for octal, is -EINVAL. */
int number_parse_decimal(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/** As number_parse() up to @max, in bytes, with K, M or G for powers of 1024 allowed behind it. */
int number_parse_size(const char *s, uint64_t max, uint64_t *out);

/** "50us", "250ms", "2s", "5m", "1h" in microseconds. 0; -EINVAL; -ERANGE: more than 30 days. */
int number_parse_duration(const char *s, uint64_t *us);

#endif
