/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * history.h - what becomes of a key, version by version: so that a reader knows every value that a get may
 * return between two versions. One writer per key.
 */
#ifndef TESTS_MEMCACHED_HISTORY_H
#define TESTS_MEMCACHED_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_KEYS = 64, HISTORY_KEY = 16, HISTORY_VALUE = 700, HISTORY_COMMAND = HISTORY_VALUE + 100 };

/** Its versions: the last one that memcached has confirmed, and the last one that it was asked for. */
struct history {
	uint64_t done, begun;
};

void history_key(unsigned key, char name[HISTORY_KEY]);

/** The command that makes version @version of @key from the one before. Returns its length. */
size_t history_command(unsigned key, uint64_t version, char command[HISTORY_COMMAND]);

/** The value in version @version; -1: the key is absent. */
int history_value(unsigned key, uint64_t version, char value[HISTORY_VALUE]);

/** The next version from @version on that does not depend on the one before. */
uint64_t history_restart(uint64_t version);

#endif
