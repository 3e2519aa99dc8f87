/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memcached.h - the memcached of a region: proved when the region is opened, and looked at from then on by a
 * thread, which publishes what it finds beside the live line of the file (protocol/cache-format.h). It proves
 * the next memcached that runs with the file.
 */
#ifndef GENERATION_MEMCACHED_H
#define GENERATION_MEMCACHED_H

#include "memcached/proof.h"
#include "reddnd/catalog/catalog.h"
#include "reddnd/rnic/region.h"

struct memcached;

/** Called by the thread, once: the region cannot be served any more; @why is a clause. */
typedef void memcached_failed(void *arg, const char *why);

/**
 * Opens the file of @conf, which must be @region, and proves its memcached; a memcached that does not
 * answer in time takes some seconds at most. -EINVAL: it cannot be served, and @why is the reason, a clause.
 * -ENOMEM.
 */
int memcached_open(struct memcached **memcached, const struct catalog_region *conf,
	const struct rnic_region *region, memcached_failed *failed, void *arg, char why[PROOF_WHY]);
/** Ends the thread, whatever it waits for. */
void memcached_close(struct memcached *memcached);

/** Where its parts are in the file. */
const struct reddn_cache_header *memcached_header(const struct memcached *memcached);

struct memcached_state {
	struct proof proof; /* of the memcached that runs, or of the last one */
	bool proved;        /* false: another one runs, which has not been proved yet */
	uint64_t dead_us;   /* since no memcached runs; 0: one does */
	uint64_t items;     /* when it was last asked */
	unsigned power;     /* of its hash table, the larger one of two */
};

/** Any thread. */
void memcached_state(struct memcached *memcached, struct memcached_state *state);

#endif
