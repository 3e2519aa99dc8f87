/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis.h - Redis as a source of a table: a server or a replica of version 6 or later, which needs no
 * configuration. Of each key that it reports as changed (CLIENT TRACKING, BCAST, over RESP2) the value is
 * asked for, at most one GET at a time per key. The rules are in rules.h.
 *
 *     APART ──▶ ATTACHING ──▶ VERIFYING ──▶ SCANNING ──▶ FOLLOWING
 *
 * VERIFYING asks for each key that the table has, SCANNING for those that only the source has; then the table
 * is equal to it. What puts all in doubt leads back to VERIFYING, a connection that is lost to APART. The
 * table keeps what it has meanwhile.
 *
 * How new the table is, is found by barriers, one after the other while it follows: TIME and INFO are asked,
 * which show that nothing has happened that is not reported; then PING twice on the connection of the
 * reports; then what is to be asked for is asked for. The table is as of that TIME then.
 *
 * Only the lookup of the host's name may block.
 */
#ifndef TOOLS_REDDN_FOLLOW_REDIS_H
#define TOOLS_REDDN_FOLLOW_REDIS_H

#include "tools/reddn-follow/keys.h"
#include "tools/reddn-follow/mirror.h"
#include "tools/reddn-follow/source.h"
#include "tools/reddn-follow/url.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

enum redis_state { REDIS_APART, REDIS_ATTACHING, REDIS_VERIFYING, REDIS_SCANNING, REDIS_FOLLOWING };

enum { REDIS_WINDOW = 1000, REDIS_QUESTIONS = 4096 };

struct redis_link {
	redisContext *context;
	bool unsent;
	unsigned awaited; /* answers */
	uint64_t since;   /* ms: nothing has come from then on though an answer is awaited; 0: none is */
};

struct redis_barrier {
	enum {
		BARRIER_REST,
		BARRIER_ASKED,       /* TIME, INFO */
		BARRIER_PONG,        /* the first PONG is awaited */
		BARRIER_SECOND_PONG, /* and this one */
		BARRIER_PASS,        /* keys in the queue are asked for, and their answers awaited */
		BARRIER_SECOND_PASS, /* again: those that changed while they were asked for are in the queue
					now */
	} state;
	uint64_t source_us, host_ns; /* TIME, and CLOCK_REALTIME before that was asked for */
	uint64_t asked_us;           /* and CLOCK_MONOTONIC */
	uint64_t goal;               /* pongs, or answers */
};

/** If one of these has another value, the source may have other data than what it has reported. */
struct redis_facts {
	char run_id[48], replid[48], role[16];
	char swaps[24]; /* SWAPDBs, also in MULTI and scripts */
	char loading[4];
};

struct redis {
	const struct url *url;
	const struct prefixes *prefixes;
	struct mirror *mirror;
	struct keys keys;
	enum redis_state state;
	struct redis_link data, inval;
	char inval_id[24], inval_run_id[48];

	struct redis_question {
		enum { ASK_SETUP, ASK_TIME, ASK_INFO, ASK_SCAN, ASK_GET, ASK_TTL } what;
		struct key *key;
		uint64_t source_ms;   /* ASK_TTL: when it was asked, by the clock of the source, or earlier */
	} questions[REDIS_QUESTIONS]; /* on the data connection, in the order of the answers */
	unsigned first, n;
	unsigned asked; /* keys */
	uint64_t mean;  /* bytes of an answer: the window is less for large values */
	bool got;       /* a value of the key whose PTTL comes next */
	enum mirror_put put;

	struct redis_facts facts, seen,
		last;                /* at the last load; of the INFO that comes; of the one before */
	uint64_t infos;              /* calls of INFO that the source has counted; 0: not known */
	bool reset;                  /* it has begun to count anew */
	bool again;                  /* in doubt since the last load has begun */
	uint64_t load_from, load_at; /* ms: when that was; the next one not before this */
	bool grows;                  /* the table, as the source is read */
	bool scanning;               /* there is a SCAN to be answered */
	char cursor[24];             /* empty: SCAN has ended */
	uint64_t goal;               /* keys that are to be answered until the table is equal */

	struct redis_barrier barrier;
	uint64_t barriers;     /* that were published */
	uint64_t pings, pongs; /* of this connection */
	int64_t behind_us;     /* the clock of the source is so far ahead of CLOCK_MONOTONIC, or further */
	uint64_t behind_at;    /* us: when that was found; 0: never */

	uint64_t now, ping_at, info_at, retry_at, pause;
	uint64_t loads, invalidated;
	char why[256]; /* of being apart, the last time */
};

/** @url, @prefixes and @m stay the caller's. */
void redis_init(struct redis *r, const struct url *url, const struct prefixes *prefixes, struct mirror *m);
struct source redis_as_source(struct redis *r);

/** Prints the command that gives a user of Redis what a follower of these prefixes needs. */
void redis_print_acl(const struct prefixes *prefixes);

#endif
