/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool.h - what the command-line tools share: complaints and numbers.
 */
#ifndef TOOLS_COMMON_TOOL_H
#define TOOLS_COMMON_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A line on stderr, with the name the program was called by before it. Returns 2, the exit status of errors.
 */
int tool_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The same, with an exit status of one's own as its value. */
#define TOOL_FAIL(status, ...) (tool_complain(__VA_ARGS__), (status))

/** All of @s is a number from @min to @max, decimal, 0x or 0. */
bool tool_number(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/** The same up to @max, with K, M or G for powers of 1024 allowed behind it. */
bool tool_size(const char *s, uint64_t max, uint64_t *out);

/** Text, or what "hex:" and hexadecimal digits say; zeroes fill it up to @len bytes. False: it is longer, or
 * no hexadecimal. */
bool tool_bytes(const char *s, uint8_t *out, size_t len);

#endif
