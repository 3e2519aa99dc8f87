/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moment.h - for tests that make one moment by hand: a memcached that stops in the midst of a copy (slow.c,
 * with SLOW_HOLD), a NIC that takes a READ late, and a client that gets one key from it. What fails, or takes
 * longer than MOMENT_WAIT_MS, ends the test with status 2.
 */
#ifndef TESTS_MEMCACHED_MOMENT_H
#define TESTS_MEMCACHED_MOMENT_H

#include "libclient/mc/judge.h"
#include "libclient/reddn.h"
#include "memcached/talk.h"

#include <stdbool.h>

enum {
	MOMENT_WAIT_MS = 60000,
	/* of memcached-get with one item, READs of the bucket before that of the first header */
	MOMENT_BUCKETS = 3,
};

struct moment {
	const char *hold; /* the file SLOW_HOLD */
	struct reddn *c;
	struct talk t;
	struct mc_facts facts;
};

/** @args: RDMA-ADDRESS PORT OFFLOAD SERVER HOLD. Connects to both, and waits until the memcached is proved.
 */
void moment_open(struct moment *m, char *const args[5]);
void moment_close(struct moment *m);

void moment_pause_ms(long ms);

/** Asks memcached for @command; it has to answer @wanted. */
void moment_ask(struct moment *m, const char *wanted, const char *command);

/** memcached is to stop in the midst of the next copy. */
void moment_hold_memcached(const struct moment *m);
/** Waits until it does. */
void moment_wait_for_memcached(const struct moment *m);
void moment_release_memcached(const struct moment *m);

/** Runs `softcx fault add` with these words, instead of the faults that there are. */
void moment_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Waits until it has struck. */
void moment_wait_for_nic(void);

struct mc_place moment_place(const struct moment *m, const char *key);
/** Asks the NIC for the bucket of @key. */
void moment_submit(struct moment *m, const char *key);
/** Its reply, until reddn_release(). */
struct reddn_result moment_reply(struct moment *m);

/** Judges the reply by all rules but those of @leave_out; @newest as in struct mc_question. */
enum mc_judgement moment_judge(const struct moment *m, const struct reddn_result *r, const char *key,
	uint64_t newest, unsigned leave_out, struct mc_item *item);

/** Asks the NIC until *@item is a hit by all rules, valid until reddn_release(). */
void moment_hit(struct moment *m, const char *key, struct mc_item *item);

#endif
