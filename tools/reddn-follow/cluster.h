/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster.h - a Redis Cluster as a source of a table, or a range of its slots: each master that has some of
 * them is followed as a server of its own (redis.h). Some nodes are given; what most of those that are
 * attached say of the slots is followed, if they reach most of the masters. When that changes, a master that
 * is new is attached, one that has no slots any more is left, and one that has others than before is asked
 * for all keys.
 *
 * The range stays that of the table, whichever masters have it: clients that look for a key (libreddn(3),
 * shards) do not notice that slots move.
 *
 * A master that has gone keeps its slots until another one has them: the table keeps its keys, and is as of
 * the moment before.
 */
#ifndef TOOLS_REDDN_FOLLOW_CLUSTER_H
#define TOOLS_REDDN_FOLLOW_CLUSTER_H

#include "tools/reddn-follow/redis.h"

struct cluster_server {
	struct redis redis;
	struct source source;
	struct url url;
	char id[48];    /* of the node; empty: it was given, and is not known yet */
	unsigned slots; /* that are followed; 0: it has none of them */
	unsigned fds;   /* of poll(2): its first one */
};

struct cluster {
	struct redis_whole whole;
	const struct url *seeds;
	unsigned nseeds, next;
	struct cluster_server *server[REDIS_SERVERS]; /* whole.n */
	uint64_t seek_at;                             /* ms; with one that is attached, later */
	uint64_t left;                                /* loads of servers that were left */
	char name[320], why[SOURCE_WHY];
};

/** All stay the caller's. @slots: whose keys are followed, redis_slots(). */
void cluster_init(struct cluster *c, const struct url *seeds, unsigned nseeds, uint64_t slots,
	const struct prefixes *prefixes, struct mirror *m);
struct source cluster_as_source(struct cluster *c);

#endif
