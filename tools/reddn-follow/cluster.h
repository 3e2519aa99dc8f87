/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cluster.h - a Redis Cluster as a source of a table: each master that has slots is followed as a server of
 * its own (redis.h). Some nodes are given; what most of those that are attached say of the slots is followed.
 * When that changes, a master that is new is attached, one that has no slots any more is left, and one that
 * has others than before is asked for all keys.
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
	uint64_t slots; /* slots_hash(); 0: it has none */
	unsigned fds;   /* of poll(2): its first one */
};

struct cluster {
	struct redis_whole whole;
	const struct url *seeds;
	unsigned nseeds, next;
	struct cluster_server *server[REDIS_SERVERS]; /* whole.n */
	uint64_t seek_at;                             /* ms */
	uint64_t left;                                /* loads of servers that were left */
	char name[320], why[SOURCE_WHY];
};

/** All stay the caller's. */
void cluster_init(struct cluster *c, const struct url *seeds, unsigned nseeds,
	const struct prefixes *prefixes, struct mirror *m);
struct source cluster_as_source(struct cluster *c);

#endif
