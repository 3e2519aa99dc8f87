/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.h - what a follower knows of keys: which are to be asked for, which are asked for, when one expires,
 * and which ones the table lacks. Keys of which there is nothing to know are not here: memory is about 130
 * bytes and the key for each that is dirty, expires, or is absent. Times are ms of any clock, which may be
 * set forward. Ends the process if there is no memory.
 */
#ifndef TOOLS_REDDN_FOLLOW_KEYS_H
#define TOOLS_REDDN_FOLLOW_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

enum key_state {
	KEY_CLEAN,
	KEY_DIRTY,       /* in the queue of those to be asked for, once however often it changes */
	KEY_ASKED,       /* its value is on the way */
	KEY_ASKED_DIRTY, /* and it has changed since */
};

struct key {
	UT_hash_handle hh;
	struct key *prev, *next;         /* of the queue */
	struct key *due_prev, *due_next; /* of those that expire about the same time */
	uint64_t due;                    /* 0: never */
	enum key_state state;
	bool absent; /* the source has it, the table cannot */
	uint32_t len;
	char bytes[];
};

struct keys {
	struct key *all, *queue, **wheel;
	size_t queue_bytes;
	uint64_t ticked; /* the wheel has turned to here */
	uint64_t ndue, nabsent, nqueued;
	uint64_t queued, answered; /* since keys_forget_questions(): keys leave the queue in its order */
};

void keys_init(struct keys *ks);
void keys_deinit(struct keys *ks);

/** The key may have changed: it will be asked for. */
void keys_mark(struct keys *ks, const char *bytes, size_t len);
/** The first of the queue, which is asked for from now on; NULL: it is empty. */
struct key *keys_ask(struct keys *ks);
/** There is an answer: @absent as in struct key, @due as there. The key may be freed. */
void keys_answer(struct keys *ks, struct key *k, bool absent, uint64_t due);
/** A key that is asked for has changed since. */
void keys_changed(struct keys *ks, struct key *k);

/** Marks keys that are due; some later. */
void keys_expire(struct keys *ks, uint64_t now);
/** Marks all keys that are due until @now, and some that are due later. */
void keys_expire_all(struct keys *ks, uint64_t now);
/** Milliseconds until the next may be due, at most @most. */
int keys_pause(const struct keys *ks, uint64_t now, int most);

/** There will be no answers, and nothing is to be asked for: the connection is gone. */
void keys_forget_questions(struct keys *ks);
/** Marks all absent keys. */
void keys_mark_absent(struct keys *ks);

#endif
