/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bans.h - addresses whose clients are refused or throttled for a while. Pure.
 *
 * A ban is for an address without its port: all clients of a machine share it. When BANS_MAX are in force, a
 * new one replaces the one that would end first.
 */
#ifndef POLICY_BANS_H
#define POLICY_BANS_H

#include <stddef.h>
#include <stdint.h>

enum { BANS_MAX = 1024, BANS_WHY = 100, BANS_ADDRESS = 64 };

struct ban {
	char address[BANS_ADDRESS];
	uint64_t until; /* us; 0: free */
	uint64_t rate;  /* requests per second of each session; 0: none */
	char why[BANS_WHY];
};

struct bans {
	struct ban bans[BANS_MAX];
	unsigned n;
};

/** @peer: "ADDRESS port N" or "ADDRESS". @rate: as in struct ban. A ban of the same address that ends later
 * stays as it is.
 */
void bans_add(struct bans *b, const char *peer, uint64_t until, uint64_t rate, const char *why);
/** The ban in force for @peer, or NULL. */
const struct ban *bans_find(struct bans *b, const char *peer, uint64_t now);

#endif
