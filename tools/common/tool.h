/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool.h - error messages and byte arguments of the command-line tools.
 */
#ifndef TOOLS_COMMON_TOOL_H
#define TOOLS_COMMON_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Print the program's name and the text as a line on stderr. What a peer or a file said may be in it: it has
 * no control characters then (text_clean()). Returns 2, the exit status of errors. */
int tool_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The same, with @status as its value. */
#define TOOL_FAIL(status, ...) (tool_complain(__VA_ARGS__), (status))

/** @memory, of an allocation; ends the process with 2 if there is none. */
void *tool_must(void *memory);

/** Parse text, or "hex:" and hexadecimal digits, padded with zeroes to @len bytes. False: longer than @len,
 * or no hexadecimal digits. */
bool tool_bytes(const char *s, uint8_t *out, size_t len);

#endif
