/* SPDX-License-Identifier: BSD-2-Clause */
/* preload-check.h - finds a program and checks that the dynamic linker will load the driver into it. */
#ifndef SOFTCX_TOOL_PRELOAD_CHECK_H
#define SOFTCX_TOOL_PRELOAD_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/** Path of @command as execvp(3) would find it. 0, or -1 with errno. */
int preload_check_find(const char *command, char *path, size_t size);

/**
 * False if the driver cannot be loaded into the program at @path; @why then has the reason, in words that
 * follow the path. For a script the interpreter counts. A file of unknown kind passes.
 */
bool preload_check_program(const char *path, char *why, size_t size);

#endif
