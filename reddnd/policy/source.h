/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what counts as one source of clients, and what is remembered of sources: who is banned, whose
 * refusals are listed, which addresses answer. Pure.
 *
 * An IPv4 address is one. Of IPv6 a host has a whole network of addresses, so a source is a prefix, of 64
 * bits unless the configuration gives another length. Link-local addresses have the prefix of all their
 * neighbours: each of them is a source.
 */
#ifndef POLICY_SOURCE_H
#define POLICY_SOURCE_H

#include "reddnd/policy/rate.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOURCE_BITS = 64, SOURCE_TEXT = INET6_ADDRSTRLEN + 4 };

struct source {
	uint8_t prefix[16]; /* IPv4 as ::ffff:a.b.c.d */
};

/** The source of a client. @bits: of an IPv6 address; 0: SOURCE_BITS. */
struct source source_of(const uint8_t address[16], unsigned bits);

/** The network that it probably shares with other sources of the same owner: 24 bits of IPv4, 48 of IPv6. */
struct source source_network(const struct source *s);

/** "192.0.2.1", "2001:db8::/64". */
const char *source_text(const struct source *s, unsigned bits, char text[SOURCE_TEXT]);

/*
 * Sources whose clients are refused or throttled for a while.
 *
 * A ban is for a source: all clients of a machine share it. When BANS_MAX are in force, a new one replaces
 * the one that would end first of the network that has the most. So who has many addresses of one network
 * displaces only bans of that network, and cannot keep others from being banned.
 */

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

/*
 * Which refusals of clients are listed one by one, and which are only counted.
 *
 * Each source has a rate, and a burst of REFUSALS_BURST. All sources together have REFUSALS_SHARES times as
 * much, so that one with many addresses does not get more. What is beyond is counted by source, and reported
 * as one number from time to time. REFUSALS_MAX sources are remembered; the one that was silent for the
 * longest time makes room, and its number goes to the rest.
 */

enum { REFUSALS_MAX = 1024, REFUSALS_BURST = 10, REFUSALS_SHARES = 10, REFUSALS_WHY = 140 };

struct refusals_of {
	struct rate rate;
	uint64_t more; /* refusals that have not been listed nor reported */
	char why[REFUSALS_WHY];
};

struct refusals {
	uint64_t per_second;
	struct rate all;
	struct source source[REFUSALS_MAX]; /* apart from the rest: each refusal is looked up in it */
	uint64_t last[REFUSALS_MAX];        /* us: time of the last one */
	struct refusals_of of[REFUSALS_MAX];
	unsigned n, next;
	uint64_t pending; /* sum of .more of all sources, and .rest */
	uint64_t rest;    /* of sources that are not remembered */
};

/** Sets the rate of each source. What was counted stays. */
void refusals_limit(struct refusals *r, uint64_t per_second, uint64_t now_us);

/** True: something of @s may be listed or looked up now, which uses up a part of its rate. */
bool refusals_allow(struct refusals *r, const struct source *s, uint64_t now_us);
/** Counts a refusal that refusals_allow() does not let be listed. */
void refusals_count(struct refusals *r, const struct source *s, const char *why, uint64_t now_us);

/** Takes the count of one source to be reported, and its last reason in @why. 0: there are none left. */
uint64_t refusals_take(struct refusals *r, struct source *s, char why[REFUSALS_WHY]);
/** Takes all that is left, of any source. */
uint64_t refusals_take_rest(struct refusals *r);

/*
 * Which GIDs answered when the network was asked for them, and which did not: asking for one that does not
 * answer takes a second.
 *
 * Whoever fills this memory with other GIDs makes the daemon forget some: of silent ones, which costs a
 * second each again, and of known ones, who are then as those that come for the first time. Only who has the
 * addresses makes them known.
 */

enum { REACHABILITY_SILENT = 256, REACHABILITY_KNOWN = 1024 };

/* us */
#define REACHABILITY_SILENT_US UINT64_C(5000000)
#define REACHABILITY_KNOWN_US UINT64_C(86400000000)

struct reachability_of {
	uint8_t gid[16];
	uint64_t until; /* us */
};

/** All zero: nothing is known. */
struct reachability {
	struct reachability_of silent[REACHABILITY_SILENT], known[REACHABILITY_KNOWN];
};

/** @gid has answered: it is known for a day, in place of the one that would be forgotten first. */
void reachability_answered(struct reachability *r, const uint8_t gid[16], uint64_t now_us);
/** @gid has not answered: it is silent for some seconds, and no longer known. */
void reachability_failed(struct reachability *r, const uint8_t gid[16], uint64_t now_us);

bool reachability_is_silent(const struct reachability *r, const uint8_t gid[16], uint64_t now_us);
bool reachability_is_known(const struct reachability *r, const uint8_t gid[16], uint64_t now_us);

#endif
