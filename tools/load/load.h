/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - the benchmark loop: many requests on known keys, as many outstanding as the connections take. It
 * measures their time, and checks the answers where they are known. It does not know how requests travel, so
 * that one loop compares different ways to send them (struct load_way). One thread.
 */
#ifndef TOOLS_LOAD_LOAD_H
#define TOOLS_LOAD_LOAD_H

#include "libclient/reddn.h"
#include "tools/load/histogram.h"
#include "tools/load/keyset.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

enum load_kind {
	LOAD_GET = 0,
	LOAD_PUT,
	LOAD_PUT_IF, /* on the condition that the key has the version of the result of a get */
	LOAD_DELETE,
};

/** One request. The bytes stay valid until the result has arrived. */
struct load_op {
	const void *key;
	size_t key_len;
	const void *value; /* of a put; else NULL */
	size_t value_len;
	enum load_kind kind;
	uint64_t version; /* LOAD_PUT_IF */
};

/** One connection, of any kind. The functions return the same as their namesakes in reddn.h. */
struct load_way {
	void *conn;
	unsigned depth; /* largest number of outstanding requests */
	int (*submit)(void *conn, const struct load_op *op, uint64_t cookie);
	/** Also sends submitted requests that are still unsent. The result of a put has status 0, or
	 * REDDN_CONFLICT, that of a delete 0 or REDDN_MISS, and no value. */
	int (*poll)(void *conn, struct reddn_result *res, int max);
	void (*release)(void *conn);
	const char *(*errmsg)(void *conn);
	void (*close)(void *conn);
	void (*info)(void *conn, struct reddn_info *info); /* NULL: it never repeats requests */
	/* of several hosts the i-th, as reddn_get_host(); NULL: there is one */
	int (*host)(void *conn, unsigned i, struct reddn_host_info *info);
	uint64_t (*over_tcp)(void *conn); /* requests that went over TCP instead; NULL: none ever does */
};

/** Connect. 0, or 2, the exit status, after an error on stderr. */
typedef int load_open_fn(struct load_way *way, const struct reddn_options *opt);

enum { LOAD_SECONDS = 5 };

struct load_options {
	struct reddn_options connect;
	const char *table; /* table file with the keys and their known values */
	const char *keys;  /* or text file with the keys and known values (records.h, TSV) */
	unsigned clients;  /* connections */
	unsigned absent;   /* percentage of gets for keys that are in neither */
	uint64_t count;    /* number of requests; 0: until `seconds` are over */
	uint64_t warmup;   /* additional requests before those, not counted */
	double seconds;    /* 0: not given; then LOAD_SECONDS if there is no count */
	uint64_t rate; /* requests per second at most, with sleep in between; 0: as many as there can be */
	uint64_t seed; /* of the random order of keys */
	double zipf; /* exponent of Zipf's law for the keys, the first of the file most often; 0: all alike */
	uint64_t work; /* ns of CPU time to use on each answer, as an application would; 0: none */
	bool verify;   /* compare answers with the known values */
	/* What requests that write do, and how many do, percent. Puts are of the known values. LOAD_PUT_IF:
	 * each is a get, then the put on its condition; after a conflict both again. */
	enum load_kind write;
	unsigned writes;
	/* So many keys of the file are there, writes put those behind them, and gets are for what was put
	 * latest, by `zipf`. The run ends when all are put. 0: all keys are there */
	size_t present;
	bool in_order; /* keys in the order of the file instead of at random */
	bool json;
	/* Clock of the measurement, in ns, for runs with a count; NULL: CLOCK_MONOTONIC */
	uint64_t (*now)(void);
	void (*connected)(void); /* called once all connections are established; may be NULL */
};

/**
 * Run the benchmark and print the results on stdout: text, or one JSON object. SIGINT and SIGTERM end it
 * early, with results. Returns the exit status: 0; 1: an answer was wrong or missing; 2: the run failed.
 * Errors go to stderr.
 */
int load_run(const struct load_options *opt, load_open_fn *open);

/* Options of the command line that every benchmark of load.h has. */

/** For getopt_long(3) */
#define LOAD_LETTERS "p:K:jk:Vd:n:c:s:S:R:"

/** Elements of its table of long options */
/* clang-format off */
#define LOAD_OPTIONS \
	{"port", required_argument, NULL, 'p'}, \
	{"token-file", required_argument, NULL, 'K'}, \
	{"json", no_argument, NULL, 'j'}, \
	{"keys", required_argument, NULL, 'k'}, \
	{"verify", no_argument, NULL, 'V'}, \
	{"depth", required_argument, NULL, 'd'}, \
	{"clients", required_argument, NULL, 'n'}, \
	{"count", required_argument, NULL, 'c'}, \
	{"seconds", required_argument, NULL, 's'}, \
	{"seed", required_argument, NULL, 'S'}, \
	{"rate", required_argument, NULL, 'R'}
/* clang-format on */

/** What they are without an option */
#define LOAD_DEFAULTS                                                                                        \
	{                                                                                                    \
		.clients = 1, .seed = 1                                                                      \
	}

/** Sets option @letter; keeps @text. False: @text is no value for it, or the letter is none of them. */
bool load_set_option(struct load_options *l, int letter, const char *text);

/* The load_way of libreddn. */

/** Connect to an offload of any kind. It submits gets, or puts if it is one that puts. */
int load_reddn_connect(struct load_way *way, const struct reddn_options *opt);

/** Connect to an offload that is a table. */
int load_reddn_open(struct load_way *way, const struct reddn_options *opt);

/** Connect to an offload that puts in a store. */
int load_reddn_open_put(struct load_way *way, const struct reddn_options *opt);

#endif
