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
 * Several servers, the masters of a cluster, may share a table: each has the keys of its slots, and asks for
 * CLUSTER NODES with its INFO. Then all is as of the oldest of their moments, each of which has been found
 * while the server saw the slots as they are followed, and moved none of its own: what moves may be at two
 * servers, of which one reports nothing.
 */
#ifndef TOOLS_REDDN_FOLLOW_REDIS_H
#define TOOLS_REDDN_FOLLOW_REDIS_H

#include "protocol/redis-nodes.h"
#include "tools/reddn-follow/keys.h"
#include "tools/reddn-follow/mirror.h"
#include "tools/reddn-follow/source.h"
#include "tools/reddn-follow/url.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

enum redis_state { REDIS_APART, REDIS_ATTACHING, REDIS_VERIFYING, REDIS_SCANNING, REDIS_FOLLOWING };

/* PATIENCE_MS: with a server that does not answer */
enum {
	REDIS_WINDOW = 1000,
	REDIS_QUESTIONS = 4096,
	REDIS_SERVERS = SOURCE_FDS / 2,
	REDIS_PATIENCE_MS = 2000,
};

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

/** What a table comes from: one server, or those of a cluster. */
struct redis_whole {
	const struct prefixes *prefixes;
	struct mirror *mirror;
	struct redis *server[REDIS_SERVERS];
	unsigned n, verifying; /* servers; those of them that walk over the table */
	uint64_t identity;     /* of all servers */
	bool is_cluster;
	bool is_master;             /* a replica is not followed */
	uint64_t view;              /* redis_nodes_view() that is followed; 0: none yet */
	uint64_t origin;            /* of that (redis-origin.h) */
	uint64_t slots;             /* whose keys are followed: redis_slots() */
	uint8_t owner[REDIS_SLOTS]; /* of these: number of the server; 0: none */
	bool is_covered;            /* each has one */
};

struct redis {
	const struct url *url;
	struct redis_whole *whole;
	const struct prefixes *prefixes;
	struct mirror *mirror;
	uint8_t number; /* of its slots */
	struct keys keys;
	enum redis_state state;
	struct address address; /* of its host */
	struct redis_link data, inval;
	char inval_id[24], inval_run_id[48];

	struct redis_question {
		enum { ASK_SETUP, ASK_TIME, ASK_NODES, ASK_INFO, ASK_SCAN, ASK_GET, ASK_TTL } what;
		struct key *key;
		uint64_t source_ms;   /* ASK_TTL: when it was asked, by the clock of the source, or earlier */
	} questions[REDIS_QUESTIONS]; /* on the data connection, in the order of the answers */
	unsigned first, n;
	unsigned asked; /* keys */
	uint64_t mean;  /* bytes of an answer: the window is less for large values */
	bool got;       /* a value of the key whose PTTL comes next */
	bool later;     /* it was not put because another server verifies */
	enum mirror_put put;
	struct mirror_walk walk;

	uint64_t identity; /* of the process and its history */
	char id[48];       /* of the node of a cluster */
	char *nodes;       /* what it has stated last of them; NULL: nothing */
	uint64_t view;     /* of that; 0: not on this connection, or not with most of the masters */
	bool moves;        /* and slots of its own are being moved */

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
	struct reddn_as_of stated; /* the last one; 0: there is none that counts */
	uint64_t pings, pongs;     /* of this connection */
	int64_t behind_us;  /* the clock of the source is so far ahead of CLOCK_MONOTONIC, or further */
	uint64_t behind_at; /* us: when that was found; 0: never */

	uint64_t now, ping_at, info_at, retry_at, pause;
	uint64_t loads, invalidated;
	char why[256]; /* of being apart, the last time */
};

/** All stay the caller's. */
void redis_whole_init(struct redis_whole *w, const struct prefixes *prefixes, struct mirror *m);
/** One more server of it; @url stays the caller's. deinit() of its source takes it out. */
void redis_init(struct redis *r, const struct url *url, struct redis_whole *w);
struct source redis_as_source(struct redis *r);

/** Slots are followed in another way, and if @others, it has others than before: it asks for all keys. */
void redis_reassign(struct redis *r, bool others);
static inline bool redis_is_attached(const struct redis *r)
{
	return r->state != REDIS_APART;
}
static inline bool redis_is_looked_up(const struct redis *r)
{
	return r->address.lookup;
}

/** Prints the command that gives a user of Redis what a follower of these prefixes needs. */
void redis_print_acl(const struct prefixes *prefixes, bool is_cluster);

#endif
