/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/reload.h"

#include <string.h>

static bool is_same_address(const struct catalog_listen *a, const struct catalog_listen *b)
{
	return a->port == b->port && strcmp(a->address, b->address) == 0;
}

static bool is_same_listen(const struct catalog *a, const struct catalog *b)
{
	bool same = a->nlisten == b->nlisten;

	for (unsigned i = 0; i < a->nlisten && same; i++)
		same = is_same_address(&a->listen[i], &b->listen[i]);
	return same;
}

static bool is_same_device(const struct catalog *a, const struct catalog *b)
{
	bool same = a->all_devices == b->all_devices && a->ndevices == b->ndevices;

	for (unsigned i = 0; i < a->ndevices && same; i++)
		same = strcmp(a->devices[i], b->devices[i]) == 0;
	return same;
}

const char *reload_conflict(const struct catalog *now, const struct catalog *next)
{
	if (!is_same_listen(now, next))
		return "listen";
	if (!is_same_device(now, next))
		return "device";
	if (now->serves_metrics != next->serves_metrics || !is_same_address(&now->metrics, &next->metrics))
		return "metrics";
	if (now->fenced_enables != next->fenced_enables)
		return "fenced_enables";
	return now->arena != next->arena ? "arena" : NULL;
}

bool reload_loses_offloads(const struct catalog *now, const struct catalog *next)
{
	return now->noffloads > 0 && !next->has_offloads;
}
