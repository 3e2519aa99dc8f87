/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/bans.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool same(const struct source *a, const struct source *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void drop(struct bans *b, unsigned i)
{
	b->n--;
	b->of[i] = b->of[b->n];
	b->bans[i] = b->bans[b->n];
}

static unsigned find(const struct bans *b, const struct source *of)
{
	unsigned i = 0;

	while (i < b->n && !same(&b->of[i], of))
		i++;
	return i;
}

/* ---- room for one more ---- */

struct candidate {
	struct source network;
	uint64_t until;
	unsigned at;
};

/* By network, and in it the one that ends first comes first */
static int by_network(const void *x, const void *y)
{
	const struct candidate *a = x, *b = y;
	int order = memcmp(&a->network, &b->network, sizeof(a->network));

	return order ? order : a->until < b->until ? -1 : a->until > b->until;
}

static void make_room(struct bans *b)
{
	struct candidate all[BANS_MAX];
	unsigned first = 0, most = 0;

	for (unsigned i = 0; i < b->n; i++)
		all[i] = (struct candidate){source_network(&b->of[i]), b->bans[i].until, i};
	qsort(all, b->n, sizeof(*all), by_network);
	for (unsigned i = 0, end; i < b->n; i = end) {
		for (end = i + 1; end < b->n && same(&all[end].network, &all[i].network);)
			end++;
		if (end - i > most || (end - i == most && all[i].until < all[first].until))
			first = i;
		most = end - i > most ? end - i : most;
	}
	drop(b, all[first].at);
}

static void forget_old(struct bans *b, uint64_t now)
{
	for (unsigned i = b->n; i-- > 0;)
		if (b->bans[i].until <= now)
			drop(b, i);
}

/* ---- bans ---- */

void bans_add(
	struct bans *b, const struct source *of, uint64_t until, uint64_t rate, const char *why, uint64_t now)
{
	unsigned i = find(b, of);

	if (i < b->n && b->bans[i].until >= until)
		return;
	if (i == BANS_MAX) {
		forget_old(b, now);
		if (b->n == BANS_MAX)
			make_room(b);
		i = b->n;
	}
	if (i == b->n)
		b->of[b->n++] = *of;
	b->bans[i] = (struct ban){.until = until, .rate = rate};
	snprintf(b->bans[i].why, sizeof(b->bans[i].why), "%s", why);
}

const struct ban *bans_find(struct bans *b, const struct source *of, uint64_t now)
{
	unsigned i = find(b, of);

	if (i == b->n)
		return NULL;
	if (b->bans[i].until > now)
		return &b->bans[i];
	drop(b, i);
	return NULL;
}
