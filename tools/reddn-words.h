/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-words.h - reddn cas, faa and lock: words of a server that its clients share. They return an exit
 * status, after an error on stderr.
 */
#ifndef TOOLS_REDDN_WORDS_H
#define TOOLS_REDDN_WORDS_H

#include "libclient/reddn.h"

#include <stdbool.h>

/** @texts: word, old, new. Prints what the word was; 1 if it was not the old one. */
int words_cas(struct reddn *c, bool json, char **texts);

/** @texts: word, number. */
int words_faa(struct reddn *c, bool json, char **texts);

/**
 * @texts: word, command, arguments. Runs the command while the lock is held, which is waited for at most
 * @wait_ms; -1: without a limit. Returns its exit status; 1: another client has the lock.
 */
int words_lock(struct reddn *c, uint32_t lease_ms, int wait_ms, char **texts);

#endif
