/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * generation.h - one catalog, opened on a device: regions mapped and registered, offloads compiled and ready.
 *
 * A reload makes another generation beside the one in use. A session keeps its generation, which is freed
 * when its last session has ended. Thread rules: one thread.
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

/** What all generations share. */
struct generation_parts {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct offload_stats **stats; /* counters of offloads */
	struct tenant **tenants;
};

/**
 * Takes ownership of @catalog, also on errors, which have been logged. The caller holds the first reference.
 * @parts must outlive the generation.
 */
int generation_new(
	struct generation **generation, struct catalog *catalog, const struct generation_parts *parts);
struct generation *generation_ref(struct generation *generation);
void generation_unref(struct generation *generation);

/** Applies the limits of the catalog to the tenants. */
void generation_limit(const struct generation *generation, uint64_t now_us);

/** The offload of that name, or NULL. */
const struct offload *generation_offload(const struct generation *generation, const char *name);

/**
 * 0 if one client with the depth_max of any offload has room in an arena of @room bytes; else -ENOSPC, which
 * has been logged.
 */
int generation_check_room(const struct generation *generation, uint64_t room);

#endif
