/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devices.h - the devices that the daemon serves on, each with its own arena, ledger, listeners and events:
 * opened afresh, or with what a daemon before this one left in it.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_DEVICES_H
#define SERVER_DEVICES_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/generation/tenant.h"
#include "reddnd/server/dispatch.h"
#include "reddnd/server/inheritance.h"

struct device {
	struct inheritance inheritance;
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct ledger *ledger;
	struct master_qp master;
	struct rnic_cm *cm; /* with the dispatch */
	struct dispatch dispatch;
};

/** A device that this daemon began without. */
struct device_left_out {
	char name[CATALOG_DEVICE_BYTES];
	char why[128]; /* a clause */
};

struct devices {
	struct device device[CATALOG_DEVICES_MAX]; /* by number (tenant.h) */
	unsigned n;
	struct device_left_out left_out[CATALOG_DEVICES_MAX];
	unsigned nleft_out;
	struct served served;
};

/** Of several, or of each that there is. */
#define DEVICES_EACH(device_, devices_)                                                                      \
	for (struct device *device_ = (devices_)->device; device_ < (devices_)->device + (devices_)->n;      \
		device_++)

/**
 * Opens the devices that @c and its addresses name, with what @left has of them; what it has of others ends.
 * @d: all zero. Errors have been logged; devices_close() cleans up after them, too.
 *
 * @kept: @c was last in force. Then a device that has gone, or whose addresses have, is left out as long as
 * there is another one (left_out); listeners that were left do not need their address. If not, @c may be
 * wrong: if what was left can be gone on with by a daemon with the one that was in force, this process ends
 * instead.
 */
int devices_open(struct devices *d, const struct fd_store *left, const struct catalog *c, bool kept);
/** The arena of a device that has none. Errors have been logged; -EFBIG: the process may not make such a
 * file, and would end here if it did not ignore SIGXFSZ. */
int devices_make_arena(struct rnic_arena **arena, uint64_t size);
/** The number of @device. */
unsigned devices_number(const struct devices *d, const struct device *device);
/** True: a daemon before this one left something that this one goes on with. */
bool devices_go_on(const struct devices *d);
/** Brings the counters of all sessions up to date. */
void devices_count(struct devices *d);
/** @distrusted: the next daemon begins with the configuration that is kept: the one in force may be why this
 * one fails. If not, with that of the file. */
void devices_distrust(struct devices *d, bool distrusted);
/** The service manager closes what it keeps of them. False: none has been opened. */
bool devices_clear_store(struct devices *d);
/** After their sessions, and all that is in them. */
void devices_close(struct devices *d);

#endif
