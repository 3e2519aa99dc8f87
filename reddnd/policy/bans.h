/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bans.h - sources whose clients are refused or throttled for a while. Pure.
 *
 * A ban is for a source (source.h): all clients of a machine share it. When BANS_MAX are in force, a new one
 * replaces the one that would end first of the network that has the most. So who has many addresses of one
 * network displaces only bans of that network, and cannot keep others from being banned.
 */
#ifndef POLICY_BANS_H
#define POLICY_BANS_H

#include "reddnd/policy/source.h"

#include <stddef.h>

enum { BANS_MAX = 1024, BANS_WHY = 100 };

struct ban {
	uint64_t until; /* us */
	uint64_t rate;  /* requests per second of each session; 0: none */
	char why[BANS_WHY];
};

struct bans {
	struct source of[BANS_MAX]; /* apart from the rest: every client that connects is looked up in it */
	struct ban bans[BANS_MAX];
	unsigned n;
};

/** @rate: as in struct ban. A ban of the same source that ends later stays as it is. @now: those that are
 * over make room first. */
void bans_add(struct bans *b, const struct source *of, uint64_t until, uint64_t rate, const char *why,
	uint64_t now);
/** The ban in force for @of, or NULL. */
const struct ban *bans_find(struct bans *b, const struct source *of, uint64_t now);

#endif
