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

#include "tools/common/subcommands.h"

#include <stdio.h>

struct help_verb {
	const char *tool, *verb;
	const char *letters; /* of its options */
};

/** Prints the lines of @text for @v, but for those that are neither of a verb nor of an option. */
void help_verb(FILE *f, const char *text, const struct help_verb *v);

/** Prints the usage of @v alone. */
void help_usage(FILE *f, const char *text, const struct help_verb *v);

/** Prints the lines of options in @text that are of @verb: those that have no verbs before their words, as in
 * "  -f, --follow  audit: words", and those that have it there, without it. */
void help_options(FILE *f, const char *text, const struct subcommands *s, const char *verb);

/** Prints the help of one subcommand; @text as for help_options(). */
void help_subcommand(const struct subcommands *s, const struct subcommand *c, const char *text);

/** Prints examples under a title; @examples: lines that begin with the tool. NULL: nothing. */
void help_examples(FILE *f, const char *examples);

#endif
