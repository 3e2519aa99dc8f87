/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - descriptors that the service manager keeps for the next daemon (systemd.service(5),
 * FileDescriptorStoreMax=; or reddnd-run). While it has that of the device, the NIC goes on; while it has
 * that of the connection manager, clients hear nothing.
 *
 * Each daemon has a file of the connection manager of its own, so there may be several; the others go from
 * one to the next.
 */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

#include <stdbool.h>
#include <stdint.h>

enum store_name { STORE_DEVICE, STORE_ARENA, STORE_LEDGER, STORE_RECORD, STORE_WATCHES, STORE_NAMES };
enum { STORE_CM_MAX = 8, STORE_REGION_MAX = 64, STORE_NAME_BYTES = 40 };

struct store {
	int fd[STORE_NAMES];  /* what a daemon before this one left; -1 where there is nothing */
	int cm[STORE_CM_MAX]; /* the same */
	unsigned ncm;
	char cm_name[STORE_CM_MAX + 1]
		    [STORE_NAME_BYTES]; /* of these, and last that of this daemon, if it has one */
	bool has_own_cm;
	int region[STORE_REGION_MAX]; /* files that owners have handed over, and which outlive all daemons */
	char region_name[STORE_REGION_MAX][STORE_NAME_BYTES];
	unsigned nregions;
	int configuration; /* that was last in force (catalog/kept.h), of this daemon or one before; -1: none
			    */
	uint64_t configuration_number;
};

/** Takes the descriptors that this process was started with. */
void store_take(struct store *store);
/** True if nothing was left. */
bool store_is_empty(const struct store *store);
/** Closes them, and returns when the service manager has closed its own, those of this daemon included. */
void store_clear(struct store *store);

/** What was left by that name is not needed. */
void store_remove(struct store *store, enum store_name name);
/** Gives a copy of @fd to the service manager, if there is one that stores it. */
void store_put(enum store_name name, int fd);
/** The same of this daemon's file of the connection manager. @generation: of daemons, so that it has a name
 * of its own. */
void store_put_cm(struct store *store, uint64_t generation, int fd);
/** Nothing is left in the files of the connection manager before this daemon's; it has closed them. */
void store_drop_old_cm(struct store *store);

/** Keeps @fd, which it takes, as the configuration that was last in force. There is always one. */
void store_put_configuration(struct store *store, int fd);

/** Keeps the file of region @name, in place of the one before. store_clear() leaves it there. */
void store_put_region(const char *name, int fd);
/** The file of region @name is not kept any more. */
void store_drop_region(const char *name);

#endif
