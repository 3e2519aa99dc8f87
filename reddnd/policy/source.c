/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/source.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_BITS = 128, V4_NETWORK_BITS = 96 + 24, V6_NETWORK_BITS = 48 };

static struct in6_addr in6(const uint8_t address[16])
{
	struct in6_addr a;

	memcpy(&a, address, sizeof(a));
	return a;
}

static bool is_whole(const uint8_t address[16])
{
	struct in6_addr a = in6(address);

	return IN6_IS_ADDR_V4MAPPED(&a) || IN6_IS_ADDR_LINKLOCAL(&a);
}

static struct source first_bits(const uint8_t address[16], unsigned bits)
{
	struct source s = {{0}};

	memcpy(s.prefix, address, bits / 8);
	if (bits % 8)
		s.prefix[bits / 8] = (uint8_t)(address[bits / 8] & 0xff00 >> bits % 8);
	return s;
}

struct source source_of(const uint8_t address[16], unsigned bits)
{
	return first_bits(address, is_whole(address) ? ADDRESS_BITS : bits ? bits : SOURCE_BITS);
}

struct source source_network(const struct source *s)
{
	struct in6_addr a = in6(s->prefix);

	return first_bits(s->prefix, IN6_IS_ADDR_V4MAPPED(&a) ? V4_NETWORK_BITS : V6_NETWORK_BITS);
}

const char *source_text(const struct source *s, unsigned bits, char text[SOURCE_TEXT])
{
	struct in6_addr a = in6(s->prefix);

	if (IN6_IS_ADDR_V4MAPPED(&a)) {
		inet_ntop(AF_INET, s->prefix + 12, text, SOURCE_TEXT);
		return text;
	}
	inet_ntop(AF_INET6, s->prefix, text, SOURCE_TEXT);
	if (!is_whole(s->prefix) && (bits ? bits : SOURCE_BITS) < ADDRESS_BITS)
		snprintf(text + strlen(text), SOURCE_TEXT - strlen(text), "/%u", bits ? bits : SOURCE_BITS);
	return text;
}

static bool source_is(const struct source *a, const struct source *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void ban_drop(struct bans *b, unsigned i)
{
	b->n--;
	b->of[i] = b->of[b->n];
	b->bans[i] = b->bans[b->n];
}

static unsigned ban_place(const struct bans *b, const struct source *of)
{
	unsigned i = 0;

	while (i < b->n && !source_is(&b->of[i], of))
		i++;
	return i;
}

/* ---- room for one more ---- */

struct ban_candidate {
	struct source network;
	uint64_t until;
	unsigned at;
};

/* By network, and in it the one that ends first comes first */
static int ban_by_network(const void *x, const void *y)
{
	const struct ban_candidate *a = x, *b = y;
	int order = memcmp(&a->network, &b->network, sizeof(a->network));

	return order ? order : a->until < b->until ? -1 : a->until > b->until;
}

static void bans_make_room(struct bans *b)
{
	struct ban_candidate all[BANS_MAX];
	unsigned first = 0, most = 0;

	for (unsigned i = 0; i < b->n; i++)
		all[i] = (struct ban_candidate){source_network(&b->of[i]), b->bans[i].until, i};
	qsort(all, b->n, sizeof(*all), ban_by_network);
	for (unsigned i = 0, end; i < b->n; i = end) {
		for (end = i + 1; end < b->n && source_is(&all[end].network, &all[i].network);)
			end++;
		if (end - i > most || (end - i == most && all[i].until < all[first].until))
			first = i;
		most = end - i > most ? end - i : most;
	}
	ban_drop(b, all[first].at);
}

static void bans_forget_old(struct bans *b, uint64_t now)
{
	for (unsigned i = b->n; i-- > 0;)
		if (b->bans[i].until <= now)
			ban_drop(b, i);
}

/* ---- bans ---- */

void bans_add(
	struct bans *b, const struct source *of, uint64_t until, uint64_t rate, const char *why, uint64_t now)
{
	unsigned i = ban_place(b, of);

	if (i < b->n && b->bans[i].until >= until)
		return;
	if (i == BANS_MAX) {
		bans_forget_old(b, now);
		if (b->n == BANS_MAX)
			bans_make_room(b);
		i = b->n;
	}
	if (i == b->n)
		b->of[b->n++] = *of;
	b->bans[i] = (struct ban){.until = until, .rate = rate};
	snprintf(b->bans[i].why, sizeof(b->bans[i].why), "%s", why);
}

const struct ban *bans_find(struct bans *b, const struct source *of, uint64_t now)
{
	unsigned i = ban_place(b, of);

	if (i == b->n)
		return NULL;
	if (b->bans[i].until > now)
		return &b->bans[i];
	ban_drop(b, i);
	return NULL;
}

static uint64_t refusals_burst(const struct refusals *r)
{
	return r->per_second > REFUSALS_BURST ? r->per_second : REFUSALS_BURST;
}

void refusals_limit(struct refusals *r, uint64_t per_second, uint64_t now)
{
	if (per_second == r->per_second)
		return;
	r->per_second = per_second;
	rate_init(&r->all, REFUSALS_SHARES * per_second, REFUSALS_SHARES * refusals_burst(r), now);
	for (unsigned i = 0; i < r->n; i++)
		rate_set(&r->of[i].rate, per_second, refusals_burst(r), now);
}

/* The place of a new source: that of the one that was silent for the longest time if there is no other */
static unsigned refusals_place(struct refusals *r)
{
	unsigned oldest = 0;

	if (r->n < REFUSALS_MAX)
		return r->n++;
	for (unsigned i = 1; i < REFUSALS_MAX; i++)
		if (r->last[i] < r->last[oldest])
			oldest = i;
	r->rest += r->of[oldest].more;
	return oldest;
}

static struct refusals_of *refusals_get(struct refusals *r, const struct source *s, uint64_t now)
{
	unsigned i = 0;

	while (i < r->n && memcmp(&r->source[i], s, sizeof(*s)) != 0)
		i++;
	if (i == r->n) {
		i = refusals_place(r);
		r->source[i] = *s;
		r->of[i] = (struct refusals_of){0};
		rate_init(&r->of[i].rate, r->per_second, refusals_burst(r), now);
	}
	r->last[i] = now;
	return &r->of[i];
}

bool refusals_allow(struct refusals *r, const struct source *s, uint64_t now)
{
	struct refusals_of *of = refusals_get(r, s, now);

	if (!rate_available(&of->rate, now) || !rate_available(&r->all, now))
		return false;
	rate_take(&of->rate, 1);
	rate_take(&r->all, 1);
	return true;
}

void refusals_count(struct refusals *r, const struct source *s, const char *why, uint64_t now)
{
	struct refusals_of *of = refusals_get(r, s, now);

	of->more++;
	r->pending++;
	snprintf(of->why, sizeof(of->why), "%s", why);
}

uint64_t refusals_take(struct refusals *r, struct source *s, char why[REFUSALS_WHY])
{
	for (unsigned tried = 0; tried < r->n && r->pending > r->rest; tried++) {
		unsigned i = r->next++ % r->n;
		uint64_t more = r->of[i].more;

		if (!more)
			continue;
		*s = r->source[i];
		memcpy(why, r->of[i].why, REFUSALS_WHY);
		r->of[i].more = 0;
		r->pending -= more;
		return more;
	}
	return 0;
}

uint64_t refusals_take_rest(struct refusals *r)
{
	uint64_t all = r->pending;

	for (unsigned i = 0; i < r->n; i++)
		r->of[i].more = 0;
	r->pending = r->rest = 0;
	return all;
}

static struct reachability_of *gid_find(struct reachability_of *all, unsigned n, const uint8_t gid[16])
{
	for (unsigned i = 0; i < n; i++)
		if (all[i].until && memcmp(all[i].gid, gid, 16) == 0)
			return &all[i];
	return NULL;
}

static bool gid_has(const struct reachability_of *all, unsigned n, const uint8_t gid[16], uint64_t now)
{
	for (unsigned i = 0; i < n; i++)
		if (now < all[i].until && memcmp(all[i].gid, gid, 16) == 0)
			return true;
	return false;
}

static struct reachability_of *gid_first_to_go(struct reachability_of *all, unsigned n)
{
	struct reachability_of *first = all;

	for (unsigned i = 1; i < n; i++)
		if (all[i].until < first->until)
			first = &all[i];
	return first;
}

static void gid_keep(struct reachability_of *all, unsigned n, const uint8_t gid[16], uint64_t until)
{
	struct reachability_of *at = gid_find(all, n, gid);

	if (!at)
		at = gid_first_to_go(all, n);
	memcpy(at->gid, gid, 16);
	at->until = until;
}

void reachability_answered(struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	gid_keep(r->known, REACHABILITY_KNOWN, gid, now + REACHABILITY_KNOWN_US);
}

void reachability_failed(struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	struct reachability_of *known = gid_find(r->known, REACHABILITY_KNOWN, gid);

	if (known)
		known->until = 0;
	gid_keep(r->silent, REACHABILITY_SILENT, gid, now + REACHABILITY_SILENT_US);
}

bool reachability_is_silent(const struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	return gid_has(r->silent, REACHABILITY_SILENT, gid, now);
}

bool reachability_is_known(const struct reachability *r, const uint8_t gid[16], uint64_t now)
{
	return gid_has(r->known, REACHABILITY_KNOWN, gid, now);
}
