/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * generation.h - one catalog, opened on a device: its regions mapped and registered, its offloads ready to serve.
 *
 * A reload makes another service beside the one in use. Sessions keep theirs: it goes when the last of them has ended.
 * Thread rules: one thread.
 */
#ifndef GENERATION_GENERATION_H
#define GENERATION_GENERATION_H

#include "reddnd/generation/offload.h"
#include "reddnd/generation/tenant.h"
#include "reddnd/policy/offload-stats.h"

struct service {
	struct catalog *catalog;
	struct region *regions;   /* one per region of the catalog */
	struct offload *offloads; /* one per offload of the catalog */
	struct tenant **tenants;  /* one per tenant of the catalog */
	unsigned refs;
};

/** What services have in common. */
struct service_parts {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct totals **totals; /* where offloads count */
	struct tenant **tenants;
};

/**
 * Takes @catalog, whatever the outcome. Errors have been logged. The caller holds the first reference. @parts must outlive it.
 */
int service_new(struct service **service, struct catalog *catalog, const struct service_parts *parts);
struct service *service_ref(struct service *service);
void service_unref(struct service *service);

/** Puts the limits of its tenants in force. */
void service_limit(const struct service *service, uint64_t now_us);

/** The offload of that name, or NULL. */
const struct offload *service_offload(const struct service *service, const char *name);

/**
 * Whether a client that asks for all that an offload allows finds room in an arena that has @room bytes. 0, or -ENOSPC,
 * logged.
 */
int service_check_room(const struct service *service, uint64_t room);

#endif
