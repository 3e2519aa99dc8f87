/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reachability.h - which GIDs answered when the network was asked for them, and which did not: asking for one
 * that does not answer takes a second. Pure.
 *
 * Whoever fills this memory with other GIDs makes the daemon forget some: of silent ones, which costs a
 * second each again, and of known ones, who are then as those that come for the first time. Only who has the
 * addresses makes them known.
 */
#ifndef POLICY_REACHABILITY_H
#define POLICY_REACHABILITY_H

#include <stdbool.h>
#include <stdint.h>

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
