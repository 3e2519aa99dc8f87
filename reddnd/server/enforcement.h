/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * enforcement.h - what must happen to a session, and what decides of it after a verdict: nothing, a throttle,
 * or the end of the session and perhaps a ban of its source (policy/source.h). Remembers bans and throttles.
 * Pure: the caller has the clock, reports the verdict, and carries out the action.
 */
#ifndef SERVER_ENFORCEMENT_H
#define SERVER_ENFORCEMENT_H

#include "protocol/wire.h"
#include "reddnd/policy/source.h"
#include "reddnd/policy/verdict.h"

#include <stdbool.h>
#include <stdint.h>

/** What must happen to a session. Modules of the server decide and return one; only actions.c carries it out.
 */
enum action_kind {
	ACTION_NONE,
	ACTION_THROTTLE,   /* at most .rate requests per second until .until_us */
	ACTION_UNTHROTTLE, /* its configured limits are in force again */
	ACTION_END,        /* for .reason, which .text explains to the client */
};

struct action {
	enum action_kind kind;
	uint64_t rate;
	uint64_t until_us; /* CLOCK_MONOTONIC */
	enum reddn_wire_end reason;
	char text[400]; /* a clause */
};

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
