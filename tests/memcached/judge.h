/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h - a client's judgement of a reply to memcached-get, by the rules of reddn-memcached(8).
 */
#ifndef TESTS_MEMCACHED_JUDGE_H
#define TESTS_MEMCACHED_JUDGE_H

#include "protocol/cache-format.h"

#include <stdbool.h>
#include <stddef.h>

enum judge_result { JUDGE_HIT, JUDGE_ABSENT, JUDGE_UNSURE };

/** Rules, for tests that leave some out. */
enum {
	JUDGE_PLACES = 1,  /* the three walks came to one place */
	JUDGE_AFTER = 2,   /* the header after the item is the same */
	JUDGE_BEFORE = 4,  /* the header before the item is the same */
	JUDGE_COUNTER = 8, /* nobody else holds what may be a counter */
	JUDGE_ALL = 15,
};

struct judge_item {
	const uint8_t *value; /* in the reply */
	size_t len;
	uint64_t cas;
};

/** True, and the lines that a reply begins with, if reddnd has proved the memcached that runs. */
bool judge_lines(const uint8_t *reply, struct reddn_cache_live *live, struct reddn_cache_served *served);

/** Looks for the item with @key in @reply of @len bytes. */
enum judge_result judge_reply(
	const uint8_t *reply, size_t len, const char *key, unsigned rules, struct judge_item *item);

#endif
