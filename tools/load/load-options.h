/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-options.h - options of the command line that every benchmark of load.h has.
 */
#ifndef TOOLS_LOAD_LOAD_OPTIONS_H
#define TOOLS_LOAD_LOAD_OPTIONS_H

#include "tools/load/load.h"

#include <getopt.h>
#include <stdbool.h>

/** For getopt_long(3) */
#define LOAD_LETTERS "p:K:jk:Vd:n:c:s:S:R:"

/** Elements of its table of long options */
/* clang-format off */
#define LOAD_OPTIONS \
	{"port", required_argument, NULL, 'p'}, \
	{"token-file", required_argument, NULL, 'K'}, \
	{"json", no_argument, NULL, 'j'}, \
	{"keys", required_argument, NULL, 'k'}, \
	{"verify", no_argument, NULL, 'V'}, \
	{"depth", required_argument, NULL, 'd'}, \
	{"clients", required_argument, NULL, 'n'}, \
	{"count", required_argument, NULL, 'c'}, \
	{"seconds", required_argument, NULL, 's'}, \
	{"seed", required_argument, NULL, 'S'}, \
	{"rate", required_argument, NULL, 'R'}
/* clang-format on */

/** What they are without an option */
#define LOAD_DEFAULTS                                                                                        \
	{                                                                                                    \
		.clients = 1, .seed = 1                                                                      \
	}

/** Sets option @letter; keeps @text. False: @text is no value for it, or the letter is none of them. */
bool load_set_option(struct load_options *l, int letter, const char *text);

#endif
