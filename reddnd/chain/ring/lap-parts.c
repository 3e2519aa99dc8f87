/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap-parts.h"

#include "mlx5/wqe.h"

#include <stdlib.h>

void *lap_more(struct lap *l, void *array, unsigned n, unsigned *room, size_t size)
{
	unsigned want = *room ? 2 * *room : 64;
	void *a;

	if (n < *room)
		return array;
	a = realloc(array, want * size);
	if (!a) {
		l->nomem = true;
		return array;
	}
	*room = want;
	return a;
}

unsigned lap_wqebbs(unsigned ds)
{
	return (ds * WQE_DS + LAP_WQEBB - 1) / LAP_WQEBB;
}

const struct lap_item *lap_item_of(const struct lap *l, unsigned id)
{
	return &l->items[l->item_of[id]];
}

uint32_t lap_item_end(const struct lap_item *it)
{
	return it->at + it->wqebbs;
}
