/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/offload-stats.h"

#include <stdio.h>
#include <stdlib.h>

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
