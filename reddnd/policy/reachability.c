/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/reachability.h"

#include <string.h>

static struct reachability_of *find(struct reachability_of *all, unsigned n, const uint8_t gid[16])
{
	for (unsigned i = 0; i < n; i++)
		if (all[i].until && memcmp(all[i].gid, gid, 16) == 0)
			return &all[i];
	return NULL;
}

static bool has(const struct reachability_of *all, unsigned n, const uint8_t gid[16], uint64_t now)
{
	for (unsigned i = 0; i < n; i++)
		if (now < all[i].until && memcmp(all[i].gid, gid, 16) == 0)
			return true;
	return false;
}

static struct reachability_of *first_to_go(struct reachability_of *all, unsigned n)
{
	struct reachability_of *first = all;

	for (unsigned i = 1; i < n; i++)
		if (all[i].until < first->until)
			first = &all[i];
	return first;
}

static void keep(struct reachability_of *all, unsigned n, const uint8_t gid[16], uint64_t until)
{
	struct reachability_of *at = find(all, n, gid);

	if (!at)
		at = first_to_go(all, n);
	memcpy(at->gid, gid, 16);
	at->until = until;
}

void reachability_answered(struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	keep(r->known, REACHABILITY_KNOWN, gid, now + REACHABILITY_KNOWN_US);
}

void reachability_failed(struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	struct reachability_of *known = find(r->known, REACHABILITY_KNOWN, gid);

	if (known)
		known->until = 0;
	keep(r->silent, REACHABILITY_SILENT, gid, now + REACHABILITY_SILENT_US);
}

bool reachability_is_silent(const struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	return has(r->silent, REACHABILITY_SILENT, gid, now);
}

bool reachability_is_known(const struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	return has(r->known, REACHABILITY_KNOWN, gid, now);
}
