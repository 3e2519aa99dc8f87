/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/offload-stats.h"

#include <stdio.h>
#include <stdlib.h>

struct totals *totals_get(struct totals **all, const char *name)
{
	struct totals *t;

	HASH_FIND_STR(*all, name, t);
	if (t)
		return t;
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	snprintf(t->name, sizeof t->name, "%s", name);
	HASH_ADD_STR(*all, name, t);
	return t;
}

void totals_free(struct totals **all)
{
	struct totals *t, *next;

	HASH_ITER (hh, *all, t, next) {
		HASH_DEL(*all, t);
		free(t);
	}
}
