/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis-nodes.h - which node of a Redis Cluster has which slots: the text of CLUSTER NODES (Redis Cluster
 * specification). Pure.
 */
#ifndef PROTOCOL_REDIS_NODES_H
#define PROTOCOL_REDIS_NODES_H

#include "protocol/redis-slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A master that has slots, of a line of CLUSTER NODES. */
struct redis_master {
	char id[48], host[256]; /* host: empty, it does not know its own */
	uint16_t port;
	uint64_t epoch;     /* a slot goes only to a master of a higher one */
	bool fails;         /* by who has made the text, or by most */
	const char *ranges; /* in the text: "0-5460 5462", and slots that move, in brackets */
	size_t len;
};

/** The next one; *@text goes on behind its line. False: there is none. */
bool redis_nodes_next(const char **text, struct redis_master *master);
/** Puts @number into @owner (may be NULL) for each of its slots that is @wanted (redis_slots()); returns how
 * many these are. */
unsigned redis_nodes_assign(
	const struct redis_master *master, uint64_t wanted, uint8_t owner[REDIS_SLOTS], uint8_t number);
/** A number of who has which slots, by which epoch and at which port: the same at all nodes that agree. */
uint64_t redis_nodes_view(const char *text);
/** The origin of a table that has all slots (redis-origin.h). 0: no master has any. */
uint64_t redis_nodes_origin(const char *text, const char *const *prefixes, size_t nprefixes);
/** The sum of the epoch of each slot's master: it grows with each slot that another one gets, and shrinks
 * only when a slot has no master any more, which CLUSTER DELSLOTS does. */
uint64_t redis_nodes_version(const char *text);
/** Most masters can be reached by the node that has made the text: else the others may have given slots to
 * other nodes, and it answers nothing. */
bool redis_nodes_are_ruled(const char *text);

/** The node that has made the text. False: the text has none. @moves: some of its slots, or of those that it
 * gets, are @wanted and moved now. */
bool redis_nodes_myself(const char *text, uint64_t wanted, char id[48], bool *moves);

#endif
