/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * refusals.h - which refusals of clients are listed one by one, and which are only counted. Pure.
 *
 * Each source has a rate, and a burst of REFUSALS_BURST. All sources together have REFUSALS_SHARES times as
 * much, so that one with many addresses does not get more. What is beyond is counted by source, and reported
 * as one number from time to time. REFUSALS_MAX sources are remembered; the one that was silent for the
 * longest time makes room, and its number goes to the rest.
 */
#ifndef POLICY_REFUSALS_H
#define POLICY_REFUSALS_H

#include "reddnd/policy/rate.h"
#include "reddnd/policy/source.h"

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

#endif
