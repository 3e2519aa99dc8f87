/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h - command lines of tools whose first argument is a verb: its name, its options, and how many other
 * arguments it takes.
 */
#ifndef TOOLS_COMMON_VERBS_H
#define TOOLS_COMMON_VERBS_H

#include "tools/common/help.h"

#include <stdbool.h>
#include <stddef.h>

/** First member of each element of a tool's table. */
struct verb {
	struct subcommand is; /* a verb needs the name only */
	int min_args, max_args;
	const char *options;  /* letters */
	const char *examples; /* lines of commands, each with two blanks before it; NULL: none */
};

struct verbs {
	const char *tool;    /* as it is called */
	const char *usage;   /* text of --help, as help.h has it; VERB --help prints its part */
	const char *version; /* what --version prints; NULL: there is no such option */
	const void *table;   /* n elements of `size` bytes */
	size_t n, size;
	const char *letters; /* for getopt_long(3), without h */
	const struct option *options;
	int before_dashes;  /* arguments after which a "--" before others is left out; 0: nowhere */
	const char *values; /* how values are written, for messages about wrong ones; NULL: --help has it */
	/** Sets option @letter. False: @text is not a value for it. @arguments: of verbs_parse() */
	bool (*set)(void *arguments, int letter, const char *text);
};

/**
 * Reads a command line, and sets options. Returns the verb's element, with *@args at its arguments, which end
 * with NULL. NULL: there is nothing to do but to exit with *@status; what is to be said of it has been
 * printed.
 */
const void *verbs_parse(
	const struct verbs *verbs, int argc, char **argv, void *arguments, char ***args, int *status);

#endif
