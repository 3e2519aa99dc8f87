/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unreachable.h - GIDs that did not answer lately: asking the network for one takes a second. Pure.
 *
 * Whoever fills this memory with other GIDs makes the daemon forget some, which costs a second each again.
 */
#ifndef POLICY_UNREACHABLE_H
#define POLICY_UNREACHABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { UNREACHABLE_MAX = 256, UNREACHABLE_US = 5000000 };

/** All zero: none. */
struct unreachable {
	struct {
		uint8_t gid[16];
		uint64_t until; /* us */
	} kept[UNREACHABLE_MAX];
};

/** Remembers @gid for UNREACHABLE_US, in place of the one that would be forgotten first. */
void unreachable_add(struct unreachable *u, const uint8_t gid[16], uint64_t now_us);
bool unreachable_has(const struct unreachable *u, const uint8_t gid[16], uint64_t now_us);

#endif
