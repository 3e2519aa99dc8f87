/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bans.h - clients that are refused, or served more slowly, for a while, by address. Pure.
 *
 * A ban is of the address, not of the port: all clients of a machine share it. When BANS_MAX are in force the
 * one that would end first makes room.
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

/** @peer: "ADDRESS port N" or "ADDRESS". @rate: see above. A longer ban of the same address stays as it is.
 */
void bans_add(struct bans *b, const char *peer, uint64_t until, uint64_t rate, const char *why);
/** The ban that @peer is under, or NULL. */
const struct ban *bans_find(struct bans *b, const char *peer, uint64_t now);

#endif
