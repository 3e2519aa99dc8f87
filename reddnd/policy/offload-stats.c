/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/offload-stats.h"

#include <stdio.h>
#include <stdlib.h>

void service_times_add(struct service_times *t, uint64_t ns, uint64_t n)
{
	unsigned i = bucket_of(ns >> SERVICE_UNIT_BITS, SERVICE_BITS);

	t->count[i < SERVICE_BUCKETS ? i : SERVICE_BUCKETS - 1] += n;
	t->sum_ns += n * ns;
}

void service_times_merge(struct service_times *t, const struct service_times *more)
{
	t->sum_ns += more->sum_ns;
	for (unsigned i = 0; i < SERVICE_BUCKETS; i++)
		t->count[i] += more->count[i];
}

uint64_t service_times_top(unsigned i)
{
	return ((bucket_top(i, SERVICE_BITS) + 1) << SERVICE_UNIT_BITS) - 1;
}

struct offload_stats *offload_stats_get(struct offload_stats **all, const char *name)
{
	struct offload_stats *t;

	HASH_FIND_STR(*all, name, t);
	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	HASH_ADD_STR(*all, name, t);
	return t;
}

void offload_stats_free(struct offload_stats **all)
{
	struct offload_stats *t, *next;

	HASH_ITER (hh, *all, t, next) {
		HASH_DEL(*all, t);
		free(t);
	}
}
