/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * generation.h - one catalog, opened on the devices that the daemon serves on: regions mapped once and
 * registered with each, offloads compiled for each.
 *
 * A reload makes another generation beside the one in use. A session keeps its generation, which is freed
 * when its last session has ended; then a thread closes its regions.
 *
 * Thread rules: one thread, but for generation_open().
 */
#ifndef GENERATION_GENERATION_H
#define GENERATION_GENERATION_H

#include "reddnd/generation/handover.h"
#include "reddnd/generation/offload.h"
#include "reddnd/generation/stored.h"
#include "reddnd/generation/tenant.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/util/worker.h"

#include <sys/queue.h>

struct generation {
	struct catalog *catalog;
	struct region **regions; /* one per region of the catalog */
	int *handed;             /* files of the same, until they are open; or -1 */
	/* For each device (tenant.h), one per offload of the catalog: generation_offloads() */
	struct offload *offloads;
	const struct served *served;
	bool lost[CATALOG_DEVICES_MAX]; /* when it was made: its offloads there are disabled, and nothing else
					 */
	struct tenant **tenants;        /* one per tenant of the catalog */
	struct worker *const *worker;   /* of generation_parts */
	unsigned first_window;          /* number, of its regions */
	struct stored stored;
	const struct stored *left;     /* of generation_parts */
	struct stored_offload *found;  /* one per offload of the catalog */
	const struct offload **living; /* of earlier generations, while it is being opened */
	unsigned nliving;
	unsigned *users; /* of each of @offloads: generation_use() */
	unsigned refs;
	LIST_ENTRY(generation) link; /* all that there are */
};

/** What all generations share. */
struct generation_parts {
	const struct served *served;
	struct offload_stats **stats; /* counters of offloads */
	struct tenant **tenants;
	const struct handovers *handovers;
	const struct stored *left;    /* of the daemon before this one */
	struct worker *const *worker; /* closes regions, for as long as there is one */
};

/**
 * Takes the reference to @catalog, also on errors, which have been logged. The caller holds the first
 * reference. @parts must outlive the generation. Next: generation_open(). @now: the one in force, or NULL. If
 * it has the same catalog, its good regions are used as they are, unless somebody has handed another file
 * over.
 */
int generation_new(struct generation **generation, struct catalog *catalog, const struct generation *now,
	const struct generation_parts *parts);
/**
 * Opens the files of its regions and compiles its offloads, calls @compiled if that is not NULL, and then
 * opens its stores. That may take long. Only once, and on any thread; nobody else uses the generation
 * meanwhile. Mistakes of the configuration are errors, which have been logged; what is wrong with files of
 * regions disables the offloads that use them.
 */
int generation_open(
	struct generation *generation, void (*compiled)(void *arg, struct generation *generation), void *arg);
/** After that, on the thread of all others. */
void generation_opened(struct generation *generation);
struct generation *generation_ref(struct generation *generation);
void generation_unref(struct generation *generation);
/** The same for a session of @offload, or a client that gets one: while there are any, no other program may
 * store what its program relies on. */
void generation_use(const struct offload *offload);
void generation_leave(const struct offload *offload);

/** Applies the limits of the catalog to the tenants. */
void generation_limit(const struct generation *generation, uint64_t now_us);

/** The number of its offloads that are disabled, on any device that is not lost. */
unsigned generation_disabled(const struct generation *generation);
unsigned generation_unfit(const struct generation *generation); /* disabled because of the device */

/** Numbers of its regions. */
struct generation_regions {
	unsigned bad;
	unsigned retired;    /* tables that others have replaced, and marked, */
	unsigned succeeded;  /* and whose path another file has */
	unsigned moved;      /* the file is no longer at its path */
	unsigned unfinished; /* tables whose writer died in a move */
};
struct generation_regions generation_count_regions(const struct generation *generation);

/** 0 if the file @fd could be handed over as region @region of the catalog; -EINVAL, and the reason; -ENOMEM.
 */
int generation_try_file(const struct generation *generation, unsigned region, int fd, char why[REGION_WHY]);

/** The offloads of the catalog, for device @device. */
struct offload *generation_offloads(const struct generation *generation, unsigned device);
/** That of this name, or NULL. */
const struct offload *generation_offload(
	const struct generation *generation, unsigned device, const char *name);

/** True: @o, of another generation, has a store in whose place @generation has another one. */
bool generation_replaces(const struct generation *generation, const struct offload *o);

/** Disables the offloads of device @device of which a client with the depth_max has no room in an arena of
 * @room bytes, and logs which. Before anybody uses @generation. */
void generation_check_room(struct generation *generation, unsigned device, uint64_t room);

#endif
