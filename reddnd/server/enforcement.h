/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * enforcement.h - decides what follows from a verdict: nothing, a throttle, or the end of the session and
 * perhaps a ban of its address. Remembers bans and throttles. Pure: the caller has the clock, reports the
 * verdict, and carries out the action.
 */
#ifndef SERVER_ENFORCEMENT_H
#define SERVER_ENFORCEMENT_H

#include "reddnd/policy/bans.h"
#include "reddnd/policy/verdict.h"
#include "reddnd/server/action.h"

#include <stdbool.h>

/** All zero: nobody is banned or throttled. */
struct enforcement {
	struct bans banned;
	struct bans throttled;
};

/** False, with the reason in @rej, if @peer ("ADDRESS port N") is banned. */
bool enforcement_admits(struct enforcement *e, const char *peer, uint64_t now_us, struct reddn_wire_rej *rej);

/** The action for a new session of @peer: a throttle that its address is under, or none. */
void enforcement_begin(struct enforcement *e, const char *peer, uint64_t now_us, struct action *action);

/**
 * The action for a session of @peer that got verdict @v, where the catalog asks for @policy. A fatal verdict
 * always ends the session. A ban or a throttle is remembered for the address.
 */
void enforcement_judge(struct enforcement *e, const struct verdict_policy *policy, const char *peer,
	const struct verdict *v, uint64_t now_us, struct action *action);

#endif
