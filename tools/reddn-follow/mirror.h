/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mirror.h - the table that follows a source, as any source sees it: put, delete, and a walk over all keys
 * for a source that has to ask whether they are still there. An error is kept: nothing works after it, and
 * the process ends.
 */
#ifndef TOOLS_REDDN_FOLLOW_MIRROR_H
#define TOOLS_REDDN_FOLLOW_MIRROR_H

#include "libclient/reddn-table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

/*
 * Which keys a source had when it was read as a whole: 24 bytes each, hashes of 128 bits. Two keys with one
 * hash do not occur. Ends the process if there is no memory.
 */

struct seen_key {
	uint64_t hash[2];
	uint64_t where; /* the caller's */
};

/** All zero: empty. */
struct seen {
	struct seen_key *keys; /* by hash, when they are sorted */
	size_t n, room;
};

void seen_add(struct seen *s, const void *key, size_t len, uint64_t where);
/** No more is added; those below need it. */
void seen_sort(struct seen *s);
/** Two entries with one key, or NULL: the first of a pair. */
const struct seen_key *seen_twice(const struct seen *s);
void seen_deinit(struct seen *s);

struct mirror {
	struct reddn_table *table;
	uint64_t puts, deletes;
	const char *path; /* the caller's */
	uint64_t epoch, look_at;
	ino_t inode;
	struct reddn_as_of as_of;     /* what the table states */
	uint64_t slots;               /* whose keys it has once it is published, as in live.slots; 0: none */
	uint64_t stated_slots;        /* and states */
	struct mirror_absent *absent; /* of mirror_equal() */
	int error; /* -errno: -ESTALE, it is not what its name leads to any more; -EBADMSG, it is damaged */
};

struct mirror_absent {
	struct seen_key key;
	UT_hash_handle hh;
};

/** Over all keys. */
struct mirror_walk {
	uint64_t at, epoch;
};

enum mirror_put { MIRROR_PUT, MIRROR_NO_ROOM, MIRROR_UNFIT };

/** Opens the table, or makes one by @opt. @path stays the caller's. 0, or -errno and the reason in @err. */
int mirror_open(
	struct mirror *m, const char *path, const struct reddn_table_options *opt, char *err, size_t errlen);
void mirror_close(struct mirror *m);

/** MIRROR_NO_ROOM, MIRROR_UNFIT (too long, or an empty key): the key is absent, whatever was there before,
 * and the table states that it is not complete. */
enum mirror_put mirror_put(
	struct mirror *m, const char *key, size_t key_len, const char *val, size_t val_len);
void mirror_delete(struct mirror *m, const char *key, size_t key_len);
bool mirror_has(struct mirror *m, const char *key, size_t key_len);
/** Its value, valid until the next change; false: it is not there. */
bool mirror_get(struct mirror *m, const char *key, size_t key_len, const void **val, size_t *val_len);

/** For a source that knows each value without being asked: the same as mirror_put(), if another value is
 * there. What could not be put is kept in mind. */
enum mirror_put mirror_equal(
	struct mirror *m, const char *key, size_t key_len, const char *val, size_t val_len);
/** Keys that could not be put, and have been neither put nor deleted since. */
uint64_t mirror_count_absent(const struct mirror *m);
/** Goes on to remove what @seen does not have, from mirror_walk() on, at most @n keys at a time; what is
 * absent but not seen is forgotten. True: that was all. */
bool mirror_keep(struct mirror *m, struct mirror_walk *w, const struct seen *seen, unsigned n);

/**
 * The entries come from this source from now on, a number of 24 bits. If the table states how new it was by
 * another one, that is not known any more, nor which slots it has. @origin: as the table states it
 * (table-format.h); 0: clients cannot compare it.
 */
void mirror_set_source(struct mirror *m, uint32_t source, uint64_t origin);
/** The clock of the source has gone backwards: moments before cannot be compared with later ones. */
void mirror_reset_clock(struct mirror *m);
/** The table has all that the source had at a moment, by its clock in us, and by CLOCK_REALTIME in ns. */
void mirror_publish(struct mirror *m, uint64_t source_us, uint64_t host_ns, bool complete);

/**
 * Begins a walk over all keys. As long as it goes on, keys that are in the table may get values and be
 * deleted, but no others may be put: an entry that moves might not be met.
 */
void mirror_walk(struct mirror *m, struct mirror_walk *w);
/** The next key; false: that was all. It is valid until the next call for the mirror. */
bool mirror_walk_next(struct mirror *m, struct mirror_walk *w, const char **key, size_t *len);

/** Goes on with growth, and sees whether the table was replaced or removed. @now: ms. True: call it again
 * soon.
 */
bool mirror_tend(struct mirror *m, uint64_t now);

#endif
