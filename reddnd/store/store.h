/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - the writer of a store (protocol/table-format.h), in the memory of its file: extents for
 * instances of chains, entries for keys that clients put, moves, and the end of entries without a record.
 * Chains publish; the caller reports what came of each instance (chain/ring/publish.h).
 *
 * An extent is *held* by the caller from store_take() until it reports that an instance has published it, or
 * gives it back. What a publish replaces rests, and is used again after a *grace*: a time in which all chains
 * that had begun before it, of gets too, end. The caller finds that time:
 *
 *   store_work() returns true and no grace is under way: store_grace_begins(). From then on it waits for each
 *   session of the store, of any offload and any engine, until each of its chains is over that had begun,
 *   whether or not its completion has been seen. Chains of stopped queues are over. It has reported the
 *   outcome of all of them (store_published(), _unplaced(), _unfinished()) when it calls store_grace_over().
 *
 * Chains of sessions of an earlier writer may go on, also while the store is opened: from what a bucket names
 * alone does not follow which extent is whose. So there is no extent before the first grace is over: by then
 * the caller has reported all that had been published when the buckets were read.
 *
 * Extents are offsets in the heap, places are offsets in the array of buckets, locators are words as a NIC
 * reads them. All of these come from chains that the caller has verified; the record in an extent comes from
 * a client, and is checked. A key with the fingerprint 0 gets no entry: a message of no bytes asks for that.
 *
 * A store that evicts (its file has that) removes entries that were put long ago, where there is no room for
 * another key: those with extents of its size, or all of a part of the heap that has extents of another size,
 * if these are older. Entries whose record has expired leave any store, by CLOCK_REALTIME.
 *
 * Nothing here waits. Thread rules: one thread, that of the event loop.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/** An extent that an instance of an earlier writer may publish, or has published though no outcome of it was
 * reported; or will, because it is armed with it. */
struct store_held {
	uint64_t at;
	uint32_t bytes; /* at least; the header included */
};

/**
 * Opens the store in @file, @size bytes that are mapped for writing and stay so, and goes on with what an
 * earlier writer left; notes in its header that it was opened. The caller has the lock of a writer, and holds
 * the extents @held; no other one is published from now on. 0; @why: what of the earlier writer's could not
 * be gone on with, in words, or empty. -EBADMSG: it is no store or a damaged one, or has no such extents,
 * @why in words; -ENOMEM.
 */
int store_open(struct store **out, uint8_t *file, uint64_t size, const struct store_held *held, size_t n,
	char *why, size_t why_size);
/** Notes in the file what the next writer need not look for. To be called before store_close() by a writer
 * that can: one that dies has not called it. */
void store_leave(struct store *s);
/** Nothing is written to the file by this, or after it. Extents that are held are free when it is opened
 * again. */
void store_close(struct store *s);

/**
 * Takes an extent of at least @bytes, the header included, at offset *@at, with a new version in its header.
 * -ENOMEM; -ENOSPC: there is none now; there may be after store_grace_over() or store_give(), and not before
 * the first grace is over. -EINVAL: no extent of this store can be so long.
 */
int store_take(struct store *s, uint32_t bytes, uint64_t *at);
/** The same extent for another instance, after one that has not published: it gets a new version. */
void store_renew(struct store *s, uint64_t at);
/** True if a session may hold @n extents of @bytes: all sessions together hold no more than a quarter of the
 * heap, so that there is room for entries and for what rests. */
bool store_may_hold(const struct store *s, uint32_t bytes, unsigned n);
/** Gives a held extent back: no instance can publish it. */
void store_give(struct store *s, uint64_t at);

/**
 * An instance has put the locator @now at @place, where @old was. Its extent is not held any more; or not
 * after a grace, if it had been replaced before the store was opened. False: its client has broken the rule
 * for lengths, and its session should end; the store takes the entry out.
 */
bool store_published(struct store *s, uint64_t place, uint64_t old, uint64_t now);
/**
 * An instance found no mark, and has published nothing: @bytes, the header included, came into the extent
 * @at, which stays held, and which the caller must not renew or give before this. If they are a record, its
 * key gets a bucket, at once or in a later store_work(). False: they are no message that a client may send.
 */
bool store_unplaced(struct store *s, uint64_t at, uint32_t bytes);
/**
 * An instance that came to its publish will never be over: its queues have failed and are stopped. The store
 * finds out whether it took place. Its extent is not held any more. Arguments as of store_published().
 */
void store_unfinished(struct store *s, uint64_t place, uint64_t old, uint64_t now);

/** Does what can be done now. True: it wants another grace. To be called after reports and graces. */
bool store_work(struct store *s);
/** Again before it is over: it goes on. */
void store_grace_begins(struct store *s);
void store_grace_over(struct store *s);

enum { STORE_CLASSES = 32 };

struct store_numbers {
	uint64_t buckets;
	uint64_t entries;    /* keys with a record */
	uint64_t tombstones; /* buckets of keys whose record was deleted, */
	uint64_t fresh;      /* and of keys that have not had one yet */
	uint64_t moves;      /* of entries, since it was opened */
	uint64_t evicted;    /* entries, since it was opened */
	uint64_t expired;    /* entries that were removed for that, since it was opened */
	/* When store_work() has something to do by itself, in ms by CLOCK_REALTIME; 0: never. No more than
	 * once a second it looks for what has expired */
	uint64_t sweep_ms;
	/* Reports that cannot be: of a publish that was not armed, or replaced nothing: not zero after a
	 * fault of the caller or the device */
	uint64_t contradictions;
	uint64_t chunks, chunks_free;
	bool full; /* REDDN_TABLE_FULL */
	unsigned classes;
	struct store_extents {
		uint32_t bytes; /* of one */
		uint64_t free;  /* in chunks of the class; those of free chunks come on top */
		uint64_t held, used, resting;
	} extents[STORE_CLASSES];
};

void store_numbers(const struct store *s, struct store_numbers *n);

#endif
