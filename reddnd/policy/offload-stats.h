/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offload-stats.h - counters of each offload, by its name. They outlive sessions and reloads, and never
 * decrease.
 */
#ifndef POLICY_OFFLOAD_STATS_H
#define POLICY_OFFLOAD_STATS_H

#include "reddnd/catalog/catalog.h"
#include "util/buckets.h"

#include <uthash.h>

/*
 * How long requests took in the server: from the completion of the RECV to that of the last work request of
 * the reply, which is when the client's NIC has acknowledged it. A histogram, exact to an eighth. They are of
 * this daemon, not of one before it.
 */

enum {
	SERVICE_BITS = 3,
	SERVICE_UNIT_BITS = 6,                                           /* times are counted in 64 ns */
	SERVICE_BUCKETS = BUCKETS(33 - SERVICE_UNIT_BITS, SERVICE_BITS), /* to 8.6 s; longer ones as that */
};

/** All zero: none. */
struct service_times {
	uint64_t sum_ns;
	uint64_t count[SERVICE_BUCKETS];
};

/** @n requests took @ns nanoseconds each. */
void service_times_add(struct service_times *t, uint64_t ns, uint64_t n);
/** Adds all of @more to @t. */
void service_times_merge(struct service_times *t, const struct service_times *more);
/** The longest time, in nanoseconds, that bucket @i counts. */
uint64_t service_times_top(unsigned i);

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
