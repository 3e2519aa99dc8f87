/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * enforcement.h - decides what follows from a verdict: nothing, a throttle, or the end of the session and
 * perhaps a ban of its source (policy/source.h). Remembers bans and throttles. Pure: the caller has the
 * clock, reports the verdict, and carries out the action.
 */
#ifndef SERVER_ENFORCEMENT_H
#define SERVER_ENFORCEMENT_H

#include "reddnd/policy/bans.h"
#include "reddnd/policy/verdict.h"
#include "reddnd/server/action.h"

#include <stdbool.h>

/** All zero: nobody is banned or throttled. */
struct enforcement {
	unsigned source_bits; /* of an IPv6 address, for source_of() */
	struct bans banned;
	struct bans throttled;
};

/** False, with the reason in @rej, if a client with this address (16 bytes: rnic_conn_address()) is banned.
 */
bool enforcement_admits(
	struct enforcement *e, const uint8_t *address, uint64_t now_us, struct reddn_wire_rej *rej);

/** The action for a new session of that address: a throttle that its source is under, or none. */
void enforcement_begin(struct enforcement *e, const uint8_t *address, uint64_t now_us, struct action *action);

/**
 * The action for a session of a client with @address that got verdict @v, where the catalog asks for @policy.
 * A fatal verdict always ends the session. A ban or a throttle is remembered for the source of the address.
 */
void enforcement_judge(struct enforcement *e, const struct verdict_policy *policy, const uint8_t *address,
	const struct verdict *v, uint64_t now_us, struct action *action);

#endif
