/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - many requests on known keys, as many under way at a time as the connections take, timed and, where
 * the answers are known, checked. It does not know how requests travel: ways of asking are compared by the
 * same loop. One thread.
 */
#ifndef TOOLS_LOAD_LOAD_H
#define TOOLS_LOAD_LOAD_H

#include "libclient/reddn.h"
#include "tools/load/histogram.h"
#include "tools/load/keyset.h"

#include <stdbool.h>
#include <stdint.h>

/** A get; with a value it sets the key to it instead. The bytes stay as they are until the result is there.
 */
struct load_op {
	const void *key;
	size_t key_len;
	const void *value; /* NULL: a get */
	size_t value_len;
};

/** One connection, of any kind. The functions have the outcomes of those of reddn.h that are called like
 * them. */
struct load_way {
	void *conn;
	unsigned depth; /* requests that can be outstanding */
	int (*submit)(void *conn, const struct load_op *op, uint64_t cookie);
	/** Also sends what was submitted, where that was left undone. Sets have status 0 and no value. */
	int (*poll)(void *conn, struct reddn_result *res, int max);
	void (*release)(void *conn);
	const char *(*errmsg)(void *conn);
	void (*close)(void *conn);
	void (*info)(void *conn, struct reddn_info *info); /* NULL: requests are never sent again */
};

/** Connects. 0, or after a complaint on stderr the exit status 2. */
typedef int load_open_fn(struct load_way *way, const struct reddn_options *opt);

struct load_options {
	struct reddn_options connect;
	const char *table; /* ask for the keys of this table file, and know their values */
	const char *keys;  /* or for those of this file (records.h, TSV); values in it are known answers */
	unsigned clients;  /* connections */
	unsigned absent;   /* percent of gets for keys that are in neither */
	uint64_t count;    /* requests to do; 0: until `seconds` are over */
	uint64_t warmup;   /* requests more, before those, that are not counted */
	double seconds;
	uint64_t seed; /* of the order of keys */
	uint64_t work; /* ns of CPU time to spend on each answer, as one does that uses it; 0: none */
	bool verify;   /* compare answers with the known ones */
	bool set;      /* set keys to their known values */
	bool in_order; /* each key in its turn instead of keys at random */
	bool json;
	/* The clock that results are measured with, in ns, for runs with a count; NULL: the machine's */
	uint64_t (*now)(void);
	void (*connected)(void); /* called when all connections are there; NULL: nobody wants to know */
};

/**
 * Does what the options say and prints the results on stdout: text, or one JSON object. SIGINT and SIGTERM
 * end it early, with results. Returns the exit status: 0, 1 when an answer was wrong or missing, 2 when it
 * could not be done. Complains on stderr.
 */
int load_run(const struct load_options *opt, load_open_fn *open);

#endif
