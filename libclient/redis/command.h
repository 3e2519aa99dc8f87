/* SPDX-License-Identifier: BSD-2-Clause */
/* command.h - a command of Redis and its words. */
#ifndef LIBCLIENT_REDIS_COMMAND_H
#define LIBCLIENT_REDIS_COMMAND_H

#include "libclient/reddn.h"

struct command {
	const char *text; /* as it is sent */
	size_t size;
	size_t n;
	struct reddn_key *word;
	size_t nkeys; /* of word, from the second on */
};

#endif
