/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn.h - verbs of reddn, each family in a file of its own. They return an exit status, after an error on
 * stderr.
 */
#ifndef TOOLS_REDDN_H
#define TOOLS_REDDN_H

#include "libclient/reddn.h"

#include <stdbool.h>

/** Why the request failed, in words. */
const char *call_error(struct reddn *c, int error);

/* ---- reddn-call.c: arguments of any program as text, and the fields of its reply ---- */

enum call_output { CALL_FIELDS, CALL_HEX, CALL_RAW, CALL_JSON };

/** Calls @offload once on @c, with @texts, which end with NULL: NAME=VALUE each, or values in the order of
 * the program. Prints the reply. */
int call_run(struct reddn *c, const char *offload, enum call_output output, char **texts);

/* ---- reddn-store.c: keys of a store ---- */

/**
 * @texts: key, value. Without a value, or with "-", standard input is the value. @version: that which the key
 * must have, or NULL. @ttl_ms: after so long it expires; 0: never. 1: it has another version.
 */
int store_put(struct reddn *c, bool json, const uint64_t *version, uint64_t ttl_ms, char **texts);
/** @texts: keys; with @version one. 1: one of them was absent, or has another version. */
int store_delete(struct reddn *c, bool json, const uint64_t *version, char **texts);

/* ---- reddn-words.c: words of a server that its clients share ---- */

/** @texts: word, old, new. Prints what the word was; 1 if it was not the old one. */
int words_cas(struct reddn *c, bool json, char **texts);
/** @texts: word, number. */
int words_faa(struct reddn *c, bool json, char **texts);
/**
 * @texts: word, command, arguments. Runs the command while the lock is held, which is waited for at most
 * @wait_ms; -1: without a limit. Returns its exit status; 1: another client has the lock.
 */
int words_lock(struct reddn *c, uint32_t lease_ms, int wait_ms, char **texts);

/* ---- reddn-log.c: logs of a server that clients append to and read ---- */

struct log_output {
	bool json, escape;
	bool follow;  /* wait for further entries, for ever */
	bool lasting; /* the handle connects again: what is read is asked for again */
};

/** @texts: a value, or none: each line of standard input is one. Prints the number of each entry. */
int log_append(struct reddn *c, bool json, char **texts);
/** Prints the entries from @l->next on. 1: some were not there any more, or were skipped. */
int log_print(struct reddn *c, struct reddn_log *l, const struct log_output *o);

/* ---- reddn-mc.c: gets from a pool of memcacheds ---- */

/** Runs the command in argv[1], with its options. */
int reddn_mc_main(int argc, char **argv);

#endif
