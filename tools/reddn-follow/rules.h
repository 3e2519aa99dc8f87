/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules.h - what keeps a table equal to its source. Each rule has a case in tests/follow/rules.py that a
 * follower without it fails; only the build for that test can leave one out.
 */
#ifndef TOOLS_REDDN_FOLLOW_RULES_H
#define TOOLS_REDDN_FOLLOW_RULES_H

#include <stdbool.h>

enum rule {
	/* Changes are reported before SCAN begins: what is overwritten behind its cursor would stay old. */
	RULE_TRACK_FIRST = 1,
	/* A key that changes while its value is on the way is asked for again. */
	RULE_ASK_AGAIN,
	/* Only nil and WRONGTYPE mean that there is no string. LOADING, NOPERM, MASTERDOWN mean nothing. */
	RULE_ERRORS_SAY_NOTHING,
	/* A value that the table cannot hold takes the place of the one before: that is removed. */
	RULE_NO_OLD_VALUE,
	/* A message without keys puts all in doubt: FLUSHALL, FLUSHDB of any database, a replica that loads.
	 */
	RULE_ALL_IN_DOUBT,
	/* Redis finds an expired key when it comes by, or when somebody asks: hours later. */
	RULE_EXPIRY,
	/* The invalidation connection is silent when it has died, and the other one goes on. */
	RULE_PING,
	/* Redis reports nothing of SWAPDB. INFO counts it. */
	RULE_INFO,
	/* Both connections are with one server: a name may lead to several. */
	RULE_ONE_SERVER,

	/* A barrier: from its answer to TIME on, two rounds of PING on the invalidation connection. Messages
	 * of what was before come before the second PONG: it is answered behind the turn of Redis' loop
	 * that has the first one, and a turn ends with its messages. */
	RULE_PONG,
	RULE_SECOND_PONG,
	/* What is to be asked for then is asked for first. */
	RULE_APPLY,
	/* As long as all is in doubt, the table is as of the moment before. */
	RULE_DOUBT,
	/* A clock that is set back begins another epoch. */
	RULE_CLOCK,
	/* A key expires so long after it was asked for, by the clock of the source: its answer may be late.
	 */
	RULE_DUE,
	/* The table is stated to be incomplete before a key is removed that the source has. */
	RULE_INCOMPLETE_FIRST,
	/* CONFIG RESETSTAT may hide a SWAPDB: INFO has counted fewer calls of INFO than this program has
	   made. */
	RULE_RESET,
};

#ifdef REDDN_FOLLOW_TEST
bool rule_kept(enum rule rule);
#else
static inline bool rule_kept(enum rule rule)
{
	(void)rule;
	return true;
}
#endif

#endif
