/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seen.h - which keys a source had when it was read as a whole: 24 bytes each, hashes of 128 bits. Two keys
 * with one hash do not occur. Ends the process if there is no memory. Pure.
 */
#ifndef TOOLS_REDDN_FOLLOW_SEEN_H
#define TOOLS_REDDN_FOLLOW_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_key {
	uint64_t hash[2];
	uint64_t where; /* the caller's */
};

/** All zero: empty. */
struct seen {
	struct seen_key *keys; /* by hash, when they are sorted */
	size_t n, room;
};

/** Of a key, with @where. */
struct seen_key seen_key_of(const void *key, size_t len, uint64_t where);

void seen_add(struct seen *s, const void *key, size_t len, uint64_t where);
/** No more is added; those below need it. */
void seen_sort(struct seen *s);
/** Two entries with one key, or NULL: the first of a pair. */
const struct seen_key *seen_twice(const struct seen *s);
bool seen_has(const struct seen *s, const struct seen_key *k);
void seen_deinit(struct seen *s);

#endif
