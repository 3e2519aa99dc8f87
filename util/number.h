/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * number.h - numbers, sizes and durations from text. One parser for configuration, command lines and sockets.
 *
 * The whole text must be the number, without blanks and sign. An error leaves *out unchanged.
 */
#ifndef UTIL_NUMBER_H
#define UTIL_NUMBER_H

#include <stdint.h>

/** Parse a decimal or 0x hexadecimal number; a 0 in front does not make it octal. 0; -EINVAL: not a number;
 * -ERANGE: not from @min to @max. */
int number_parse(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/** The same for decimal numbers only. */
int number_parse_decimal(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/** Parse a size in bytes up to @max, as number_parse() does, with K, M, G, KiB, MiB or GiB for powers of 1024
 * behind it. */
int number_parse_size(const char *s, uint64_t max, uint64_t *out);

/** Parse a duration such as "50us", "250ms", "2s", "5m", "1h" to microseconds. 0; -EINVAL; -ERANGE: more than
 * NUMBER_LONGEST, which is 30 days. */
#define NUMBER_LONGEST "720h"
int number_parse_duration(const char *s, uint64_t *us);

#endif
