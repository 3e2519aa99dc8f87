/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held-store.h - a store (reddnd/store) that this process has open and is the writer of. There is one for
 * each file, shared by the regions of all generations: a reload finds it open. The file belongs to others: if
 * it is cut off or overwritten, the store is *bad* from then on, and does nothing more. What is in the file
 * then is opened as another store.
 *
 * Thread rules: held_store_get(), held_store_has(), held_store_end(), held_store_is_bad() and
 * held_store_unref() may be called on any thread; the others on one, that of the event loop, once a region
 * has it.
 */
#ifndef GENERATION_HELD_STORE_H
#define GENERATION_HELD_STORE_H

#include "reddnd/generation/table.h"
#include "reddnd/store/store.h"

struct held_store;

/**
 * The store in @file, which @table was read from: that which is open, or it is opened, and what its last
 * writer left half done is completed; then @table has what its header has since. No chain may publish
 * meanwhile. 0; @why: what was lost of an opened one, in words, or empty. -EAGAIN: another program writes it;
 * -EBUSY: sessions of the one that was in the file before have not ended; -EINVAL, -EBADMSG; @why in words of
 * each. -ENOMEM.
 */
int held_store_get(
	struct held_store **h, struct table *table, const struct rnic_region *file, char *why, size_t size);
/**
 * Before the store in file @ino of @dev is opened: instances of sessions that go on have extents @held in it
 * (store_open()). May be called for each session. -ENOMEM. held_store_expect_none() forgets all.
 */
int held_store_expect(uint64_t dev, uint64_t ino, const struct store_held *held, size_t n);
void held_store_expect_none(void);
/** A descriptor with the lock of a writer, which a daemon before this one left. */
struct held_store_inherited {
	int fd;          /* -1: it is closed */
	uint64_t number; /* of the copy that the service manager has */
	bool used;       /* by a store, which has that copy from then on */
};

/** A store that is opened until this is called with 0 uses its lock of the @n at @locks, whose descriptor is
 * closed then. If it cannot be opened, nothing changes: chains may publish in its file. */
void held_store_inherit_locks(struct held_store_inherited *locks, unsigned n);

/** True: this process is the writer of a store in @file. */
bool held_store_has(const struct rnic_region *file);
/** It is bad: its file has been cut off or overwritten. Nothing is written to it after this. */
void held_store_end(struct held_store *h);
struct held_store *held_store_ref(struct held_store *h);
void held_store_unref(struct held_store *h); /* the last one gives the file back to other writers */
/**
 * A descriptor, the caller's, that keeps other writers away from the file for as long as it is open in any
 * process, but no longer than this one has the store. So that of a service manager does when this process has
 * died, and chains may still publish. -EBADF: the store was given up; -errno.
 */
int held_store_lock(const struct held_store *h);
/** That of the inherited lock which it uses; 0: it has one of its own. */
uint64_t held_store_lock_number(const struct held_store *h);
/** True: there is another reference than that of the caller. */
bool held_store_is_shared(const struct held_store *h);
/** The file was cut off or overwritten. */
bool held_store_is_bad(const struct held_store *h);
/** Chains of one more session may publish in it, from before its first extent on until its queues are
 * stopped. */
void held_store_join(struct held_store *h);
void held_store_leave(struct held_store *h);

/* The calls of store.h. Of one that is bad there is no extent, nothing to do, and nothing wrong. */
int held_store_take(struct held_store *h, uint32_t bytes, uint64_t *at);
bool held_store_may_hold(const struct held_store *h, uint32_t bytes, unsigned n);
void held_store_renew(struct held_store *h, uint64_t at);
void held_store_give(struct held_store *h, uint64_t at);
bool held_store_published(struct held_store *h, uint64_t place, uint64_t old, uint64_t now);
bool held_store_unplaced(struct held_store *h, uint64_t at, uint32_t bytes);
void held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now);
bool held_store_work(struct held_store *h);
void held_store_grace_begins(struct held_store *h);
void held_store_grace_over(struct held_store *h);
void held_store_numbers(struct held_store *h, struct store_numbers *n);

/** Grows whenever extents may have become free. */
uint64_t held_store_returned(const struct held_store *h);

#endif
