/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moves.h - entries that change their bucket, or leave it. Chains may publish in a bucket until its mark has
 * been 0 for a grace. So moves are collected, begin together, and end together one grace later:
 *
 *   moves_path(), moves_remove()   collect them; nothing is stored
 *   moves_begin()                  live.moves is odd, the journal has them, their marks are 0
 *   a grace that begins after that
 *   moves_end()                    each entry is copied, locator before mark, and its old bucket cleared, or
 *                                  it has left, unless it has got a record meanwhile; live.moves is even
 *
 * The journal is complete before the first mark is 0, and empty after the last copy. So a writer that dies
 * loses no entry: moves_recover() goes on with what it has begun.
 *
 * Thread rules: one thread.
 */
#ifndef STORE_MOVES_H
#define STORE_MOVES_H

#include "reddnd/store/buckets.h"

/** Longest chain of moves that makes room for one entry. At 48 % load, chains of a few hundred occur. */
enum { MOVES_MAX_PATH = 1024 };

struct moves {
	const struct buckets *buckets;
	struct reddn_store_journal *journal;
	uint64_t *live; /* live.moves */
	unsigned n;
	bool begun;
	struct reddn_store_move move[REDDN_STORE_MOVES];
	uint64_t record[REDDN_STORE_MOVES]; /* locators that may leave */
	uint64_t path[2][MOVES_MAX_PATH];
};

/**
 * Goes on with what the journal has, while chains may publish: entries that had been copied have moved, and
 * removals are taken back. The rest has begun, and ends after a grace. Returns how many moves of it cannot
 * be, as after damage; the first of them is in @wrong. They cost their own entries, if any.
 */
unsigned moves_recover(struct moves *m, struct reddn_store_move *wrong);

/** True if bucket @n is one of a move: nothing else may be done with it. */
bool moves_use(const struct moves *m, uint64_t n);

/** True if an entry in bucket @n is to move or leave. */
bool moves_from(const struct moves *m, uint64_t n);

enum moves_room {
	MOVES_ADDED, /* or as many as there is room for: the bucket may still be in use after moves_end() */
	MOVES_BUSY,  /* moves that have been added are in the way: try again after moves_end() */
	MOVES_NONE   /* there are none that would help */
};

/** Adds moves that empty one of the two buckets @at, both in use. They have not begun. */
enum moves_room moves_path(struct moves *m, const uint64_t at[2]);
/** The same, but adds none. */
enum moves_room moves_try(struct moves *m, const uint64_t at[2]);
/** Adds the removal of the entry in bucket @n, which nothing uses, unless it has a record when the moves end;
 * that of @record may leave, if it is not 0. False: no room. They have not begun. */
bool moves_remove(struct moves *m, uint64_t n, uint64_t record);

void moves_begin(struct moves *m);

/** What moves_end() reports of an entry. */
struct moves_ended {
	struct reddn_store_move move;
	uint64_t locator; /* that it had */
	bool removed;
};

/** Calls @ended for each entry that moved or left. */
void moves_end(struct moves *m, void (*ended)(void *arg, const struct moves_ended *e), void *arg);

#endif
