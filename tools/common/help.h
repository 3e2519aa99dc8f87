/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * help.h - the part of a tool's --help that is about one verb. The text has, line by line:
 *
 *     usage: TOOL VERB ...              of each verb; the next ones have blanks in place of "usage:"
 *       -o, --option VALUE  words       options of all verbs that take the letter
 *     VERB: what it does                and below it options of that verb alone
 *     other words
 */
#ifndef TOOLS_COMMON_HELP_H
#define TOOLS_COMMON_HELP_H

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

/* Look up, list and complete the subcommands of a tool. */

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

/** The element called @name. NULL after an error on stderr that suggests the nearest name. */
const void *subcommands_find(const struct subcommands *s, const char *name);

/** Print one line per subcommand for --help, with @width columns for the arguments. */
void subcommands_list(const struct subcommands *s, int width);

struct help_verb {
	const char *tool, *verb;
	const char *letters; /* of its options */
};

/** Prints the lines of @text for @v, but for those that are neither of a verb nor of an option. */
void help_verb(FILE *f, const char *text, const struct help_verb *v);

/** Prints the usage of @v alone. */
void help_usage(FILE *f, const char *text, const struct help_verb *v);

/** Prints the help of one subcommand; @text as for help_options(). */
void help_subcommand(const struct subcommands *s, const struct subcommand *c, const char *text);

/** Prints examples under a title; @examples: lines that begin with the tool. NULL: nothing. */
void help_examples(FILE *f, const char *examples);

#endif
