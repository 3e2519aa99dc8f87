/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis-origin.h - the origin of a table that follows Redis (table-format.h, live.origin): what a follower
 * states, and what a client that reads and writes the same Redis compares it with.
 *
 * Of a server it stands for the process, the number of the database and the prefixes of the keys. A replica
 * has another origin than its master: its clock shows nothing of what the master has had until then. It is
 * the sum of FNV-1a (64 bits) of "RUN_ID/DATABASE" and of each prefix, modulo 2^64. run_id is that of INFO
 * server.
 *
 * Of a cluster it stands for the masters, the slots of each, and since when it has them: any node can say
 * that. It is the sum of FNV-1a of "ID EPOCH RANGES", the words 1, 7 and from 9 on of the line of each master
 * that has slots in CLUSTER NODES, without the slots that move, and of each prefix. It never returns to an
 * earlier value: who gets a slot has a higher epoch than who had it. If the table has some of the slots only,
 * it is the complement of that: who asks one table for all keys must not believe it. The masters' processes
 * are not in it, as a client is not connected with all of them.
 *
 * Python (reddn/redis.py) has the same functions.
 */
#ifndef PROTOCOL_REDIS_ORIGIN_H
#define PROTOCOL_REDIS_ORIGIN_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REDIS_ORIGIN_FNV 0xcbf29ce484222325u

/** Goes on from @h, at first REDIS_ORIGIN_FNV. */
static inline uint64_t redis_origin_fnv(uint64_t h, const char *bytes, size_t len)
{
	for (; len--; bytes++)
		h = (h ^ (unsigned char)*bytes) * 0x100000001b3;
	return h;
}

/** Of what is followed, and the prefixes. */
static inline uint64_t redis_origin_of_keys(uint64_t source, const char *const *prefixes, size_t nprefixes)
{
	for (size_t i = 0; i < nprefixes; i++)
		source += redis_origin_fnv(REDIS_ORIGIN_FNV, prefixes[i], strlen(prefixes[i]));
	return source;
}

/** Of a server. @run_id: to the end of its line. */
static inline uint64_t redis_origin(
	const char *run_id, uint64_t database, const char *const *prefixes, size_t nprefixes)
{
	char server[80];

	snprintf(server, sizeof(server), "%.*s/%" PRIu64, (int)strcspn(run_id, "\r\n"), run_id, database);
	return redis_origin_of_keys(
		redis_origin_fnv(REDIS_ORIGIN_FNV, server, strlen(server)), prefixes, nprefixes);
}

#endif
