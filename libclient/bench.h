/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h - many gets on known keys, timed and, where the answers are known, checked. For the reddn tool.
 */
#ifndef REDDN_BENCH_H
#define REDDN_BENCH_H

#include "libclient/reddn.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_options {
	struct reddn_options connect;
	const char *table; /* ask for the keys of this table file, and know their values */
	const char *keys;  /* or for those of this file (records.h, TSV); values in it are known answers */
	unsigned clients;  /* connections, driven by one thread */
	unsigned absent;   /* percent of gets for keys that are in neither */
	uint64_t count;    /* gets to do; 0: until `seconds` are over */
	double seconds;
	uint64_t seed; /* of the order of keys */
	bool verify;   /* compare answers with the known ones */
	bool json;
};

/** Returns the exit status: 0, 1 when an answer was wrong or missing, 2 when it could not be done. Complains on stderr. */
int bench_run(const struct bench_options *opt);

#endif
