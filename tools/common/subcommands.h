/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subcommands.h - look up, list and complete the subcommands of a tool.
 */
#ifndef TOOLS_COMMON_SUBCOMMANDS_H
#define TOOLS_COMMON_SUBCOMMANDS_H

#include <getopt.h>
#include <stddef.h>

/** First member of each element of a tool's table. */
struct subcommand {
	const char *name, *args, *help; /* args: placeholder of its argument, NULL: it has none */
	const char *examples;           /* lines of commands, each with two blanks before it; NULL: none */
};

struct subcommands {
	const char *tool;
	const void *table; /* n elements of `size` bytes */
	size_t n, size;
};

const struct subcommand *subcommands_at(const struct subcommands *s, size_t i);

/** The element called @name. NULL after an error on stderr that suggests the nearest name. */
const void *subcommands_find(const struct subcommands *s, const char *name);

/** Print one line per subcommand for --help, with @width columns for the arguments. */
void subcommands_list(const struct subcommands *s, int width);

#endif
