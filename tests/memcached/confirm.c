/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confirm POOL GETS [OFFLOAD]: a client of libreddn-mc that confirms misses gets keys that nobody else
 * changes, while others change the memcached; with GETS 0, until SIGTERM. After each miss it asks over TCP
 * whether the key is there: then the miss was false. Keys that memcached has evicted, or lost in a restart,
 * are set again. Prints counts as JSON. Status 0: no miss was false, and no value wrong. 1: one was.
 */
#include "libclient/reddn-mc.h"

#include <errno.h>
#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every eighth value is longer than a reply */
enum { KEYS = 160, SHORT = 600, LONG = 20000, DEPTH = 16, WAIT_MS = 60000 };

static struct {
	uint64_t gets, nic, misses, gone, false_misses, wrong, refused, errors;
} count;

static char why[300]; /* the last error */
static struct reddn_mc *mc;
static memcached_st *plain;
static uint32_t sets[KEYS];

static size_t value_of(unsigned key, char value[LONG])
{
	size_t len = key % 8 == 7 ? LONG - key : 1 + key * 7 % SHORT;

	for (size_t i = 0; i < len; i++)
		value[i] = (char)('a' + (key + i / 8) % 26);
	return len;
}

static size_t name_of(unsigned key, char name[32])
{
	return (size_t)snprintf(name, 32, "still-%u", key);
}

static void set(unsigned key)
{
	char name[32], value[LONG];
	size_t len = value_of(key, value);

	sets[key]++;
	memcached_set(plain, name, name_of(key, name), value, len, 0, key);
}

/* A key that is there, and was set before it was asked for, was there all the while: nobody else sets it */
static void check_miss(unsigned key, uint32_t asked)
{
	char name[32], *value;
	size_t name_len = name_of(key, name), len;
	uint32_t flags;
	memcached_return_t rc;

	count.misses++;
	if (asked != sets[key])
		return;
	value = memcached_get(plain, name, name_len, &len, &flags, &rc);
	count.false_misses += rc == MEMCACHED_SUCCESS;
	count.gone += rc == MEMCACHED_NOTFOUND;
	free(value);
	set(key);
}

static void take(const struct reddn_mc_result *r)
{
	unsigned key = (uint32_t)r->cookie;
	char value[LONG];

	count.gets++;
	if (r->status == -ECONNREFUSED) {
		count.refused++; /* by nobody: a memcached that is known to be dead, and no NIC */
	} else if (r->status < 0) {
		count.errors++;
		snprintf(why, sizeof(why), "%s: %s", strerror(-r->status), reddn_mc_errmsg(mc));
	} else if (r->status == REDDN_MISS) {
		check_miss(key, (uint32_t)(r->cookie >> 32));
	} else {
		size_t len = value_of(key, value);

		count.nic += r->by_nic;
		count.wrong += r->length != len || memcmp(r->value, value, len) != 0 || r->flags != key;
	}
}

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
	(void)sig;
	stopped = 1;
}

static bool goes_on(uint64_t gets)
{
	return !stopped && (!gets || count.gets < gets);
}

static void run(uint64_t gets)
{
	struct reddn_mc_result results[DEPTH];
	unsigned seed = 5, outstanding = 0;
	char name[32];

	while (goes_on(gets) || outstanding) {
		int n;

		while (outstanding < DEPTH && goes_on(gets)) {
			unsigned key = (unsigned)rand_r(&seed) % KEYS;

			if (reddn_mc_submit(mc, name, name_of(key, name), (uint64_t)sets[key] << 32 | key) <
				0)
				break;
			outstanding++;
		}
		n = reddn_mc_wait(mc, results, DEPTH, WAIT_MS);
		for (int i = 0; i < n; i++)
			take(&results[i]);
		outstanding -= (unsigned)n;
		reddn_mc_release(mc);
	}
}

int main(int argc, char **argv)
{
	struct reddn_mc_options options = {.depth = DEPTH,
		.offload = argc > 3 ? argv[3] : NULL,
		.connect_ms = WAIT_MS,
		.reply_ms = WAIT_MS,
		.restart_ms = WAIT_MS,
		.flush_ms = REDDN_MC_FOREVER};
	struct reddn_mc_stats stats;
	char err[300];

	if (argc != 3 && argc != 4)
		return 2;
	if (reddn_mc_connect(&mc, argv[1], &options, err, sizeof(err)) < 0)
		return fprintf(stderr, "%s\n", err), 2;
	plain = memcached(argv[1], strlen(argv[1]));
	signal(SIGTERM, on_term);
	for (unsigned key = 0; key < KEYS; key++)
		set(key);
	run(strtoull(argv[2], NULL, 10));
	reddn_mc_get_stats(mc, &stats);
	printf("{\"gets\": %" PRIu64 ", \"by_nic\": %" PRIu64 ", \"misses\": %" PRIu64 ", \"gone\": %" PRIu64
	       ", \"false_misses\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"refused\": %" PRIu64
	       ", \"errors\": %" PRIu64 ", \"not_seen_by_nic\": %" PRIu64 "}\n",
		count.gets, count.nic, count.misses, count.gone, count.false_misses, count.wrong,
		count.refused, count.errors, stats.absent_wrong);
	if (count.errors)
		fprintf(stderr, "the last error: %s\n", why);
	memcached_free(plain);
	reddn_mc_close(mc);
	return count.false_misses || count.wrong;
}
