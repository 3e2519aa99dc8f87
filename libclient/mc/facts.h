/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts.h - what a client knows of a memcached from the replies of its NIC: where its hash tables are, how it
 * hashes, and what time it has there.
 */
#ifndef LIBCLIENT_MC_FACTS_H
#define LIBCLIENT_MC_FACTS_H

#include "libclient/mc/judge.h"

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
