/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sentinel.h - the master of a name that Redis Sentinel knows, as a source of a table: it is followed as a
 * server (redis.h). Sentinels are asked for its address, one at a time, again and again: the next one, when
 * one cannot say it. When the address is another one, that server is followed instead.
 *
 * The first answer counts, and a server there that is no master is not followed, as Redis asks of clients of
 * Sentinel. If no sentinel can be asked, the server that is followed stays.
 */
#ifndef TOOLS_REDDN_FOLLOW_SENTINEL_H
#define TOOLS_REDDN_FOLLOW_SENTINEL_H

#include "tools/reddn-follow/redis.h"

struct sentinel {
	struct redis_whole whole;
	struct redis redis;
	struct source server; /* of the master; its deinit is NULL: none is known yet */
	struct url url;       /* of the master */
	const struct sentinel_url *given;
	unsigned next; /* sentinel to be asked */
	struct address address;
	redisContext *context; /* with one; NULL: none */
	bool unsent;
	uint64_t since;  /* ms: the answer is awaited from then on; 0: none is */
	uint64_t ask_at; /* ms */
	uint64_t left;   /* loads of servers that were left */
	bool apart;      /* none of them has said an address since each was asked */
	char name[480], why[SOURCE_WHY];
};

/** All stay the caller's. */
void sentinel_init(struct sentinel *s, const struct sentinel_url *given, const struct prefixes *prefixes,
	struct mirror *m);
struct source sentinel_as_source(struct sentinel *s);

#endif
