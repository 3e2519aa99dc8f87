/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodes.h - the nodes of a Redis Cluster, to which the source redirects commands. MOVED names the node that
 * has the slot, which is asked first from then on; ASK one that is asked for this command only, behind
 * ASKING. After 16 redirects, or tries of what has the error TRYAGAIN, the last answer is the reply.
 *
 * Where a command has its key is learned from MOVED, which names the slot: it is a word that has this slot.
 * So no list of commands is needed, and those without a key are never sent elsewhere.
 */
#ifndef LIBCLIENT_REDIS_NODES_H
#define LIBCLIENT_REDIS_NODES_H

#include "libclient/reddn.h"
#include "protocol/redis-slots.h"

#include <hiredis/hiredis.h>

enum { PLACES = 64 };

struct command {
	const char *text; /* as it is sent */
	size_t size;
	size_t n;
	struct reddn_key *word;
	size_t nkeys; /* of word, from the second on */
};

struct node;

struct nodes {
	redisContext *source; /* the caller's; an error of a node becomes its error */
	redisContext *(*connect)(void *of, const char *host, int port); /* NULL: redirects are replies */
	void *of;
	struct node *first;
	struct node *owner[REDIS_SLOTS]; /* NULL: not known, the source is asked */
	struct place {
		uint64_t name; /* hash of that of a command */
		size_t word;   /* the number of its key */
	} place[PLACES];
};

/** Disconnects all but the source. */
void nodes_deinit(struct nodes *nodes);

/** Another node than the source is known to have the key of @c. */
bool nodes_know(const struct nodes *nodes, const struct command *c);

/** The reply to @c by the node that has its key. NULL: the source has the error, its own or that of a node;
 * as long as it has one, no node is asked. */
redisReply *nodes_send(struct nodes *nodes, const struct command *c);
/** The same, and redirects are replies. */
redisReply *nodes_send_to_source(struct nodes *nodes, const struct command *c);

/** As nodes_send, of a command that the source has answered with @reply, which is freed if it is a redirect.
 */
redisReply *nodes_follow(struct nodes *nodes, const struct command *c, redisReply *reply);

#endif
