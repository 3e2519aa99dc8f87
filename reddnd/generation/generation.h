/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * generation.h - one catalog, opened on a device: its regions mapped and registered, its offloads ready to
 * serve.
 *
 * A reload makes another generation beside the one in use. Sessions keep theirs: it goes when the last of
 * them has ended. Thread rules: one thread.
 */
#ifndef GENERATION_GENERATION_H
#define GENERATION_GENERATION_H

#include "reddnd/generation/offload.h"
#include "reddnd/generation/tenant.h"
#include "reddnd/policy/offload-stats.h"

struct generation {
	struct catalog *catalog;
	struct region *regions;   /* one per region of the catalog */
	struct offload *offloads; /* one per offload of the catalog */
	struct tenant **tenants;  /* one per tenant of the catalog */
	unsigned refs;
};

/** What generations have in common. */
struct generation_parts {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct offload_stats **stats; /* where offloads count */
	struct tenant **tenants;
};

/**
 * Takes @catalog, whatever the outcome. Errors have been logged. The caller holds the first reference. @parts
 * must outlive it.
 */
int generation_new(
	struct generation **generation, struct catalog *catalog, const struct generation_parts *parts);
struct generation *generation_ref(struct generation *generation);
void generation_unref(struct generation *generation);

/** Puts the limits of its tenants in force. */
void generation_limit(const struct generation *generation, uint64_t now_us);

/** The offload of that name, or NULL. */
const struct offload *generation_offload(const struct generation *generation, const char *name);

/**
 * Whether a client that asks for all that an offload allows finds room in an arena that has @room bytes. 0,
 * or -ENOSPC, logged.
 */
int generation_check_room(const struct generation *generation, uint64_t room);

#endif
