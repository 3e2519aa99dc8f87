/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis-origin.h - the origin of a table that follows Redis (table-format.h, live.origin): what a follower
 * states, and what a client that reads and writes the same Redis compares it with. It stands for the process,
 * the number of the database and the prefixes of the keys. A replica has another origin than its master: its
 * clock shows nothing of what the master has had until then.
 *
 * It is the sum of FNV-1a (64 bits) of "RUN_ID/DATABASE" and of each prefix, modulo 2^64. run_id is that of
 * INFO server. Python (reddn/redis.py) has the same function.
 */
#ifndef PROTOCOL_REDIS_ORIGIN_H
#define PROTOCOL_REDIS_ORIGIN_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline uint64_t redis_origin_fnv(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h;
}

/** @run_id: to the end of its line. */
static inline uint64_t redis_origin(
	const char *run_id, uint64_t database, const char *const *prefixes, size_t nprefixes)
{
	char server[80];
	uint64_t origin;

	snprintf(server, sizeof(server), "%.*s/%" PRIu64, (int)strcspn(run_id, "\r\n"), run_id, database);
	origin = redis_origin_fnv(server);
	for (size_t i = 0; i < nprefixes; i++)
		origin += redis_origin_fnv(prefixes[i]);
	return origin;
}

#endif
