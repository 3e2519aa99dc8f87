/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store.h - descriptors that the service manager keeps for the next daemon (systemd.service(5),
 * FileDescriptorStoreMax=; or reddnd-run). While it has that of the device, the NIC goes on; while it has
 * that of the connection manager, clients hear nothing.
 */
#ifndef SERVER_STORE_H
#define SERVER_STORE_H

enum store_name { STORE_DEVICE, STORE_CM, STORE_ARENA, STORE_LEDGER, STORE_NAMES };

/** What a daemon before this one left; -1 where there is nothing. */
struct store {
	int fd[STORE_NAMES];
};

/** Takes the descriptors that this process was started with. */
void store_take(struct store *store);
/** Closes them, and returns when the service manager has closed its own. */
void store_clear(struct store *store);

/** Gives a copy of @fd to the service manager, if there is one that stores it. */
void store_put(enum store_name name, int fd);

#endif
