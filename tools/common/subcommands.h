/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subcommands.h - what tools with commands share: their table of commands is looked up, listed and completed
 * in one way.
 */
#ifndef TOOLS_COMMON_SUBCOMMANDS_H
#define TOOLS_COMMON_SUBCOMMANDS_H

#include <getopt.h>
#include <stddef.h>

/** How each element of a tool's table begins. */
struct word {
	const char *name, *args, *help; /* args: what follows it, NULL if nothing does */
};

struct words {
	const char *tool;
	const void *table; /* n elements of `size` bytes */
	size_t n, size;
};

/** The element called @name; NULL after a complaint on stderr that suggests the nearest. */
const void *words_find(const struct words *w, const char *name);

/** Prints a line for each, as --help does, with @width columns for what follows it. */
void words_list(const struct words *w, int width);

/** Prints their names, separated by blanks. */
void words_names(const struct words *w);

/** Prints the long options of @options, separated by blanks; the last one is for those who build the tool,
 * and left out. */
void words_options(const struct option *options);

#endif
