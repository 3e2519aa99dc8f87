/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/bans.h"

#include <stdio.h>
#include <string.h>

static void address_of(const char *peer, char address[BANS_ADDRESS])
{
	snprintf(address, BANS_ADDRESS, "%.*s", (int)strcspn(peer, " "), peer);
}

static void drop(struct bans *b, unsigned i)
{
	b->bans[i] = b->bans[--b->n];
}

static struct ban *find(struct bans *b, const char *peer)
{
	char address[BANS_ADDRESS];

	address_of(peer, address);
	for (unsigned i = 0; i < b->n; i++)
		if (strcmp(b->bans[i].address, address) == 0)
			return &b->bans[i];
	return NULL;
}

static void make_room(struct bans *b)
{
	unsigned first = 0;

	for (unsigned i = 1; i < b->n; i++)
		if (b->bans[i].until < b->bans[first].until)
			first = i;
	drop(b, first);
}

void bans_add(struct bans *b, const char *peer, uint64_t until, uint64_t rate, const char *why)
{
	struct ban *ban = find(b, peer);

	if (ban && ban->until >= until)
		return;
	if (!ban && b->n == BANS_MAX)
		make_room(b);
	if (!ban) {
		ban = &b->bans[b->n++];
		address_of(peer, ban->address);
	}
	ban->until = until;
	ban->rate = rate;
	snprintf(ban->why, sizeof(ban->why), "%s", why);
}

const struct ban *bans_find(struct bans *b, const char *peer, uint64_t now)
{
	struct ban *ban = find(b, peer);

	if (ban && ban->until <= now) {
		drop(b, (unsigned)(ban - b->bans));
		return NULL;
	}
	return ban;
}
