/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-log.h - reddn append and log: logs of a server that clients append to and read. They return an exit
 * status, after an error on stderr.
 */
#ifndef TOOLS_REDDN_LOG_H
#define TOOLS_REDDN_LOG_H

#include "libclient/reddn.h"

#include <stdbool.h>

struct log_output {
	bool json, escape;
	bool follow;  /* wait for further entries, for ever */
	bool lasting; /* the handle connects again: what is read is asked for again */
};

/** @texts: a value, or none: each line of standard input is one. Prints the number of each entry. */
int log_append(struct reddn *c, bool json, char **texts);

/** Prints the entries from @l->next on. 1: some were not there any more, or were skipped. */
int log_print(struct reddn *c, struct reddn_log *l, const struct log_output *o);

#endif
