/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload-stats.h - counters of each offload, by its name. They outlive sessions and reloads, and never
 * decrease.
 */
#ifndef POLICY_OFFLOAD_STATS_H
#define POLICY_OFFLOAD_STATS_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/policy/service-times.h"

#include <uthash.h>

struct offload_stats {
	char name[CATALOG_NAME_MAX + 1];
	unsigned sessions; /* now */
	uint64_t requests, failed;
	uint64_t hits, misses;        /* outcome.h */
	uint64_t unseen;              /* requests that are missing in these, and in bytes_out */
	uint64_t conflicts;           /* publishes that found what they were to replace replaced */
	uint64_t wqes;                /* of chains and loops, executed */
	uint64_t iterations;          /* of loops without a bound */
	uint64_t bytes_in, bytes_out; /* of requests; of replies */
	uint64_t verdicts[VERDICT_KINDS];
	struct service_times service; /* of recycled sessions, those that were seen */
	UT_hash_handle hh;
};

/** The counters of offload @name, owned by @all; makes them if there are none. NULL when there is no memory.
 */
struct offload_stats *offload_stats_get(struct offload_stats **all, const char *name);
void offload_stats_free(struct offload_stats **all);

#endif
