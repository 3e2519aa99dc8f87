/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inheritance.h - what a daemon before this one left of a device: whether it can be gone on with, and taking
 * it over.
 *
 * First all that the ledger does not keep is destroyed, with the queues of sessions that end. Then each part
 * is taken over; sessions last, once their offloads are there. Those that publish are judged before stores
 * are opened: nothing that nobody knows of is published in one after that. Whatever happens on the way, what
 * is left can be tried again by the next daemon. After LIMIT failures in a row one starts afresh.
 *
 * Thread rules: one thread.
 */
#ifndef SERVER_INHERITANCE_H
#define SERVER_INHERITANCE_H

#include "reddnd/rnic/cm.h"
#include "reddnd/server/dispatch.h"
#include "reddnd/server/fd-store.h"

struct ledger_view;

struct inheritance {
	struct fd_store_device store;
	struct ledger_view *view; /* NULL: there is nothing to go on with */
	const struct served *served;
	struct tenant **tenants; /* all of them */
	unsigned ended;          /* sessions that were judged, and do not go on */
};

/**
 * Takes @left; NULL: nothing. If it cannot be gone on with, all of it is closed, which ends it, and view is
 * NULL. Logged.
 */
void inheritance_take(struct inheritance *in, const struct fd_store_device *left);
/** What was left of a device that is not served any more ends. Logged. */
void inheritance_give_up(const struct fd_store_device *left);
/** So does what has been taken: @why, a clause. Its files of the connection manager have been closed. Logged.
 */
void inheritance_drop(struct inheritance *in, const char *why);
/** This attempt does not count: it failed for another device. @fd: of the ledger. */
void inheritance_uncount(const struct inheritance *in, int fd);
/** True: sessions were left that go on. */
bool inheritance_has_sessions(const struct inheritance *in);

/** True: so was the device, with its memory; else it takes no direct commands, and the next daemon opens it
 * anew. */
bool inheritance_has_device(const struct inheritance *in);

/** Opens the arena and the ledger of @in->view. -errno, logged. */
int inheritance_open(struct inheritance *in, struct rnic_arena **arena, struct ledger **ledger);

/** Gives @dev the watches of files that were left, or new ones, which are kept for the next daemon. */
void inheritance_open_watches(struct inheritance *in, struct rnic_device *dev);

/** The record of clients that was left in @store, if the daemon goes on with a device, or an empty one, which
 * is kept for the next daemon. -errno, logged. */
int inheritance_open_record(struct fd_store *store, bool goes_on, struct record **record);

/**
 * When the offloads of @generation are compiled, and before its stores are opened: sessions that publish and
 * cannot go on with it end, in words, and nothing is published by them after that. What others have of stores
 * is held from the start (generation/held-store.h). Nothing if there is nothing to go on with.
 */
void inheritance_judge(struct inheritance *in, struct dispatch *d, const struct generation *generation);

/**
 * Takes over the sessions that can go on with the generation that @d serves, whose connections are in old
 * files of @cm; ends all others, in words that their clients get if they ask; destroys what nobody needs any
 * more; closes the old files. Nothing if there is nothing to go on with. -errno if the connection manager
 * failed.
 */
int inheritance_adopt(
	struct inheritance *in, struct dispatch *d, const struct served *served, struct tenant **tenants);

/** The daemon does not need what it was given any more; after inheritance_adopt() or in its place. */
void inheritance_deinit(struct inheritance *in);

#endif
