/* SPDX-License-Identifier: BSD-2-Clause */
/* preload-check.h - finds a program and checks that the dynamic linker will load the driver into it. */
#ifndef SOFTCX_TOOL_PRELOAD_CHECK_H
#define SOFTCX_TOOL_PRELOAD_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/** Path of @command as execvp(3) would find it. 0, or -1 with errno. */
int preload_check_find(const char *command, char *path, size_t size);

/**
 * False when the program at @path cannot be hosted; @why then says it in words that follow the path.
 * Of a script, its interpreter is what counts. What is not understood is given the benefit of the doubt.
 */
bool preload_check_program(const char *path, char *why, size_t size);

#endif
