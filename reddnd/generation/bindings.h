/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bindings.h - the regions of a program, and those of the catalog that are served in their place: bound and
 * checked when the offload is opened, registered for each tenant that uses it.
 *
 * Thread rules: any. Errors have been logged.
 */
#ifndef GENERATION_BINDINGS_H
#define GENERATION_BINDINGS_H

#include "reddnd/generation/offload.h"

/** Sets o->bound, and o->table if there is one. -EINVAL: the catalog has no region for one of the program. */
int bindings_make(struct offload *o, const struct catalog *catalog, struct region **regions);
/** What depends on files, which belong to others. -ENODATA: one cannot be served. -EINVAL: one is too small,
 * or is that of two regions. */
int bindings_check_files(struct offload *o);
/** -EINVAL: the program relies on what others store, others rely on what it stores, or it stores in bytes
 * that are not followed (stored.h), as it is compiled for its table. */
int bindings_check_stored(struct offload *o);
/** Registers windows for queues of @pd. -EINVAL: offsets do not fit the address of one; -errno of that. */
int bindings_check_windows(struct offload *o, struct rnic_pd *pd);

/** Fills in the regions of @env: windows on them for queues of @pd. The first call for a PD registers them,
 * which may take seconds. */
int bindings_register(const struct offload *o, struct rnic_pd *pd, struct chain_env *env);

/** The slots of these windows in the ledger, by region; NULL for what is in none. After bindings_register().
 */
void bindings_slots(
	const struct offload *o, struct rnic_pd *pd, const struct ledger_slot *slots[CHAIN_MAX_WINDOWS]);

/** True if the windows for @pd are registered. */
bool bindings_are_registered(const struct offload *o, struct rnic_pd *pd);

#endif
