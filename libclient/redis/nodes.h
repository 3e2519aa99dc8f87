/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nodes.h - the nodes of a Redis Cluster, to which the source redirects commands. MOVED names the node that
 * has the slot, which is asked first from then on; ASK one that is asked for this command only, behind
 * ASKING. After 16 redirects, or tries of what has the error TRYAGAIN, the last answer is the reply.
 *
 * Where a command has its key is learned from MOVED, which names the slot: it is a word that has this slot.
 * So no list of commands is needed, and those without a key are never sent elsewhere.
 *
 * Each node has its own clock. What one may have changed is known to be in a table that is as of a moment
 * after TIME of that node, asked for behind the command.
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
	bool changed;                    /* by the source, perhaps, and it was not asked for its time since */
	uint64_t settled;                /* us: the latest of the times of those that had changed something */
	bool outdated;                   /* what is known of who has which slots: the next read asks for it */
	struct place {
		uint64_t name; /* hash of that of a command */
		size_t word;   /* the number of its key */
	} place[PLACES];
};

/** What comes beside the answer to a read. */
struct report {
	uint64_t us; /* the latest TIME of the nodes that were asked, behind the answer; 0: unknown */
	/* CLUSTER NODES, if outdated, of who has answered; NULL: not asked. The caller's */
	redisReply *nodes;
};

/** The source is connected anew, perhaps with another cluster: it is asked who has a slot. */
void nodes_forget_owners(struct nodes *nodes);

/** Disconnects all but the source. */
void nodes_deinit(struct nodes *nodes);

/** The reply to @c by the node that has its key, which may change something. NULL: the source has the error,
 * its own or that of a node; as long as it has one, no node is asked. */
redisReply *nodes_send(struct nodes *nodes, const struct command *c);
/** The same, and redirects are replies. */
redisReply *nodes_send_to_source(struct nodes *nodes, const struct command *c);
/** As nodes_send, of what changes nothing. */
redisReply *nodes_read(struct nodes *nodes, const struct command *c, struct report *report);

/** Asks those for their time that may have changed something, and makes *@us the latest, also of those that a
 * read has asked. False: one does not answer. */
bool nodes_settle(struct nodes *nodes, uint64_t *us);
/** Those whose connection is lost are not to be asked for their time any more: it is as if their clocks were
 * those of the others. */
void nodes_forget_lost(struct nodes *nodes);

#endif
