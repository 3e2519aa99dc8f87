/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h - a client's judgement of a reply to memcached-get, by the rules of reddn-memcached(8): is the item
 * in it the one that the key had at some moment between the request and the reply, and whole?
 */
#ifndef LIBCLIENT_MC_JUDGE_H
#define LIBCLIENT_MC_JUDGE_H

#include "protocol/cache-format.h"

#include <stdbool.h>
#include <stddef.h>

/** What a reply begins with. */
struct mc_lines {
	struct reddn_cache_live live;
	struct reddn_cache_served served;
};

/** True, and the lines of a reply of @len bytes, if reddnd has proved the memcached that runs. */
bool mc_lines_read(const uint8_t *reply, size_t len, struct mc_lines *lines);

enum mc_judgement {
	MC_HIT,
	MC_ABSENT, /* the whole bucket was sent, all of its items were in the table, and none has the key */
	MC_BEYOND, /* none of the items that were sent has it; the bucket may have more */
	MC_UNSURE, /* the item, or those before it, changed meanwhile, or may change now: ask again */
	MC_LONG,   /* the item is longer than what was sent: its pieces may be got (mc_judge_pieces) */
	MC_ELSEWHERE, /* the item has expired, or has its value elsewhere: ask memcached */
};

/** Rules, for tests that leave some out. */
enum {
	MC_RULE_PLACES = 1,  /* the three walks came to one place */
	MC_RULE_AFTER = 2,   /* the header after the item is the same */
	MC_RULE_BEFORE = 4,  /* the header before the item is the same */
	MC_RULE_COUNTER = 8, /* nobody else holds what may be a counter, or moves with its CAS id */
	MC_RULE_KNOWN = 16,  /* the CAS id of what may be a counter was given before the NIC was asked */
	MC_RULES = 31,
};

struct mc_question {
	const char *key;
	size_t key_len;
	uint64_t clock;  /* the server's, in seconds, at least (protocol/cache-item.h) */
	uint64_t newest; /* CAS id of this memcached that a reply had shown when the NIC was asked */
	unsigned rules;  /* MC_RULES */
};

struct mc_item {
	const uint8_t *value; /* in the reply; NULL of one that is longer */
	size_t len;
	uint64_t place; /* where the item begins, in bytes from the start of the file */
	uint32_t at;    /* and its value, from there */
	bool held;      /* somebody held it: it may change */
	bool fresh;     /* its CAS id may be younger than the question: the change that it is of may go on */
	uint64_t cas;
	uint32_t flags;   /* of the client who set it */
	uint32_t exptime; /* by the server's clock; 0: never */
	bool due;         /* memcached has to hear of this get, or may evict the item though it is used */
};

/**
 * @lines: of this reply, of @len bytes. Sets *@item on a hit, and of one that is longer. Else @item->cas is
 * the CAS id if the item was in the table with it, as that of one that may change; 0 if that is not known.
 */
enum mc_judgement mc_judge(const uint8_t *reply, size_t len, const struct mc_lines *lines,
	const struct mc_question *q, struct mc_item *item);

/**
 * The same of an item that was longer than a reply: @before and @after are what replies showed that came
 * before its bytes were asked for and were asked for when these were there. @bytes are the first ones of the
 * item, @before->at + @before->len of them. True, and *@item, if that is the value: the item was in the table
 * all the while.
 */
bool mc_judge_pieces(const struct mc_item *before, const uint8_t *bytes, const struct mc_item *after,
	const struct mc_question *q, struct mc_item *item);

/*
 * What a client knows of a memcached from the replies of its NIC: where its hash tables are, how it hashes,
 * and what time it has there.
 */

/** All zero: nothing is known. Times are CLOCK_MONOTONIC in milliseconds. */
struct mc_facts {
	bool known;
	struct mc_lines lines; /* of the latest reply that had them */
	int64_t ahead_ms;      /* the server's clock is that far ahead of ours, at least */
	uint64_t newest;       /* CAS id of this memcached that a reply has shown; 0: none */
};

/** Learn from the lines of a reply that arrived at @now_ms; @proved: mc_lines_read(). */
void mc_facts_take(struct mc_facts *f, const struct mc_lines *lines, bool proved, uint64_t now_ms);

/** A reply, whose lines were learned from, shows an item in the table with @cas (mc_judge); 0: it does not.
 */
void mc_facts_saw(struct mc_facts *f, uint64_t cas);

/** The server's clock in seconds, at least. */
uint64_t mc_facts_clock(const struct mc_facts *f, uint64_t now_ms);

/**
 * How long ago reddnd last asked memcached for flush_all, in milliseconds, up to a second too many because
 * the server's clock has whole seconds. 0 while no memcached runs, which takes no flush_all.
 */
uint64_t mc_facts_age(const struct mc_facts *f, uint64_t now_ms);

/** A place in a hash table, and what shows later whether it was right. */
struct mc_place {
	uint64_t generation; /* 0: a guess */
	uint64_t table;      /* its bit in struct reddn_cache_live */
	uint32_t at;         /* the argument of memcached-get */
};

/** Where @key is in table @i of those in use, the smaller first. False: there are no more, or none is known.
 */
bool mc_facts_place(
	const struct mc_facts *f, unsigned i, const char *key, size_t key_len, struct mc_place *place);

/** A reply with @lines is one to a request for @place: the table was in use all the while. */
bool mc_place_holds(const struct mc_place *place, const struct mc_lines *lines);

#endif
