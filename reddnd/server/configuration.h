/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * configuration.h - the configuration that a daemon begins with: that of the file; or, where sessions of a
 * daemon before this one go on and the file has mistakes, the one that was last in force. So does a daemon
 * after one that failed to take over with what is in the file, though it has no mistake: an address that
 * cannot be bound, for instance.
 *
 * Thread rules: one thread.
 */
#ifndef SERVER_CONFIGURATION_H
#define SERVER_CONFIGURATION_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/server/fd-store.h"

struct configuration {
	struct fd_store store; /* what was left: the last configuration is in it */
	struct catalog *catalog;
	char *refused; /* why that is not the one of the file, a line; NULL: it is */
};

/** Takes what was left: fd_store_take(). */
void configuration_init(struct configuration *c);
void configuration_deinit(struct configuration *c); /* the store stays open */

/** Loads it. Errors have been logged: that of the file, if no other can be used. */
int configuration_load(struct configuration *c, const char *path);

/** True if @catalog is the one that was last in force, and a device was left. */
bool configuration_is_kept(const struct fd_store *store, const struct catalog *catalog);
/** Keeps @catalog, which is in force, for the next daemon. Errors have been logged. */
void configuration_keep(struct fd_store *store, const struct catalog *catalog);

#endif
