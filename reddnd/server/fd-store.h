/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fd-store.h - descriptors that the service manager keeps for the next daemon (systemd.service(5),
 * FileDescriptorStoreMax=; or reddnd-run). While it has that of a device, the NIC goes on; while it has
 * that of the connection manager, clients hear nothing.
 *
 * Each device has descriptors of its own, with its name in theirs. Each daemon has files of the connection
 * manager of its own, one for each device, so there may be several of a device; the others go from one to the
 * next.
 */
#ifndef SERVER_FD_STORE_H
#define SERVER_FD_STORE_H

#include "reddnd/generation/held-store.h"

#include <stdbool.h>
#include <stdint.h>

enum fd_store_name {
	FD_STORE_DEVICE,
	FD_STORE_ARENA,
	FD_STORE_LEDGER,
	FD_STORE_WATCHES,
	FD_STORE_NAMES
}; /* of a device */
enum {
	FD_STORE_DEVICES_MAX = 16,
	FD_STORE_CM_MAX = 8, /* of a device */
	FD_STORE_REGION_MAX = 64,
	FD_STORE_DEVICE_BYTES = 64,
	FD_STORE_NAME_BYTES = 112
};

/** What a daemon before this one left of a device; -1 where there is nothing. */
struct fd_store_device {
	char name[FD_STORE_DEVICE_BYTES];
	int fd[FD_STORE_NAMES];
	int cm[FD_STORE_CM_MAX]; /* files of the connection manager */
	unsigned ncm;
	uint64_t cm_number[FD_STORE_CM_MAX + 1]; /* of these, and last that of this daemon, if it has one */
	bool has_own_cm;
};

struct fd_store {
	struct fd_store_device device[FD_STORE_DEVICES_MAX];
	unsigned ndevices;
	int record; /* of clients; -1: none */
	int stored; /* what programs have stored in files (generation/stored.h); -1: none */
	int region[FD_STORE_REGION_MAX]; /* files that owners have handed over, and which outlive all daemons
					  */
	char region_name[FD_STORE_REGION_MAX][FD_STORE_NAME_BYTES];
	unsigned nregions;
	/* Files of stores with the lock of their writer; the numbers are in their names */
	struct held_store_inherited locked[FD_STORE_REGION_MAX];
	unsigned nlocked;
	int configuration; /* that was last in force (catalog/kept.h), of this daemon or one before; -1: none
			    */
	uint64_t configuration_number;
};

/** Takes the descriptors that this process was started with. */
void fd_store_take(struct fd_store *store);
/** True if nothing was left of any device. */
bool fd_store_is_empty(const struct fd_store *store);
/** The device @name of @store, or NULL: nothing was left of it. */
const struct fd_store_device *fd_store_find(const struct fd_store *store, const char *name);
/** Closes all of this but files of regions, and returns when the service manager has closed its own copies.
 */
void fd_store_clear(struct fd_store *store);

/** Nothing was left. */
void fd_store_device_init(struct fd_store_device *device);
/** Closes what was left, and returns when the service manager has closed its own copies, those of this daemon
 * included. */
void fd_store_device_clear(struct fd_store_device *device);
/** Gives a copy of @fd to the service manager, if there is one that stores it. */
void fd_store_put(const struct fd_store_device *device, enum fd_store_name name, int fd);
/** The same of this daemon's file of the connection manager. @generation: of daemons, so that it has a name
 * of its own. */
void fd_store_put_cm(struct fd_store_device *device, uint64_t generation, int fd);
/** Nothing is left in the files of the connection manager before this daemon's; it has closed them. */
void fd_store_drop_old_cm(struct fd_store_device *device);

/** The record of clients: the same, and what was left is not needed. */
void fd_store_put_record(int fd);
void fd_store_drop_record(struct fd_store *store);

/** Keeps @fd, which it takes, as what programs have stored, in place of what was left. */
void fd_store_put_stored(struct fd_store *store, int fd);

/** Keeps @fd, which it takes, as the configuration that was last in force. There is always one. */
void fd_store_put_configuration(struct fd_store *store, int fd);

/** Nobody publishes any more in the stores of the daemon before this one but where a store of this one uses
 * the lock: other writers may have the others. */
void fd_store_unlock(struct fd_store *store);
/** Keeps @fd, which has the lock of a store, under a number of its own. */
void fd_store_put_locked(uint64_t number, int fd);
void fd_store_drop_locked(uint64_t number);

/** Keeps the file of region @name, in place of the one before. fd_store_clear() leaves it there. */
void fd_store_put_region(const char *name, int fd);
/** The file of region @name is not kept any more. */
void fd_store_drop_region(const char *name);

#endif
