/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - which node of a Redis Cluster has which keys: the slot of a key, and the text of CLUSTER NODES
 * (Redis Cluster specification). Pure.
 */
#ifndef TOOLS_REDDN_FOLLOW_SLOTS_H
#define TOOLS_REDDN_FOLLOW_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 16384 };

/** Of the key, or of what it has between the first brace and the next closing one, if that is not empty. */
unsigned slot_of(const char *key, size_t len);

/** A master that has slots, of a line of CLUSTER NODES. */
struct slots_master {
	char id[48], host[256]; /* host: empty, it does not know its own */
	uint16_t port;
	const char *ranges; /* in the text: "0-5460 5462", and slots that move, in brackets */
	size_t len;
};

/** The next one; *@text goes on behind its line. False: there is none. */
bool slots_next(const char **text, struct slots_master *master);
/** Puts @number into @owner for each of its slots; returns how many these are. */
unsigned slots_assign(const struct slots_master *master, uint8_t owner[SLOTS], uint8_t number);
/** A number of who has which slots: the same at all nodes that agree. */
uint64_t slots_view(const char *text);
/** The same of one. */
uint64_t slots_hash(const struct slots_master *master);

/** The node that has made the text. False: the text has none. @moves: slots of it are moved now. */
bool slots_myself(const char *text, char id[48], bool *moves);

#endif
