/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload.h - gets with known answers: reads the original data, draws present and absent keys, compares
 * every answer with the data, and measures. It does not use tables or networks, so an error there cannot hide
 * in its verdict.
 *
 * The data is a file of Debian control stanzas (apt-cache dumpavail, /var/lib/dpkg/status): stanzas are
 * separated by empty lines, the key is the value of the field Package, the value is the whole stanza without
 * the empty line. If several stanzas have one key, the last counts.
 *
 * One thread. Errors: 0 or a negative errno, with a message on stderr for an error in a file.
 */
#ifndef TESTS_BENCH_WORKLOAD_H
#define TESTS_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workload_get {
	const char *key;
	uint32_t key_len;
	const char *value; /* NULL: the key is absent */
	uint32_t value_len;
	uint64_t started; /* ns, set by workload_start() */
};

struct workload {
	struct workload_get *gets; /* in the order to ask for them, present and absent ones mixed */
	size_t ngets;
	size_t keys;        /* different keys in the data */
	uint32_t max_value; /* of all of them, bytes */
	/* results */
	size_t hits, misses, wrong;
	uint64_t first, last; /* ns: first start, last answer */
	struct workload_priv *priv;
};

/** Draws @present keys of the file at @path and @absent ones that it does not have; equal seeds draw equal
 * keys. */
int workload_load(struct workload **w, const char *path, size_t present, size_t absent, uint64_t seed);
void workload_free(struct workload *w);

/** Call right before get @i is sent. */
void workload_start(struct workload *w, size_t i);
/**
 * Call when the answer of get @i is there: @found with the value, or not found. Counts a hit, a miss or a
 * wrong answer; the first few wrong ones are described on stderr.
 */
void workload_answer(struct workload *w, size_t i, bool found, const void *value, size_t value_len);

/**
 * Prints the results on stdout, one "name number" per line: keys, gets, hits, misses, wrong, unanswered,
 * seconds, gets_per_s, p50_us, p99_us. Returns true when every get was answered and no answer was wrong.
 */
bool workload_report(struct workload *w);

#endif
