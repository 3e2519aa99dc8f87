/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h - a get on a table, without the network: the request for a key and what a reply means. Pure
 * functions; the formats are those of wire.h and table-format.h.
 */
#ifndef LIBCLIENT_REPLY_H
#define LIBCLIENT_REPLY_H

#include "protocol/table-format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a client knows of a table. */
struct reddn_geometry {
	uint64_t seed;
	uint64_t buckets;
	uint32_t max_key;
	uint32_t max_value;
	uint8_t offset_len;
};

/** Why the numbers that a server sent cannot be those of a table; NULL if they can. */
const char *reddn_geometry_wrong(const struct reddn_geometry *g, uint32_t arg_len);

/** Bytes of a request. */
static inline uint32_t reddn_request_len(const struct reddn_geometry *g)
{
	return 2u * (7u + g->offset_len);
}

void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *arg);

enum reddn_verdict {
	REDDN_REPLY_HIT,
	REDDN_REPLY_MISS,
	REDDN_REPLY_MOVED,     /* no record, but entries moved or may have moved: ask again */
	REDDN_REPLY_OVERTAKEN, /* a record that is not, or no longer, what the bucket promised: ask again */
	REDDN_REPLY_STALE,     /* no record, in a table that has replaced the one first seen */
};

/** The live line of an earlier reply. */
struct reddn_seen {
	bool valid;
	uint64_t moves;
	uint64_t epoch;
};

/**
 * Judge the reply in `slot` (`slot_size` bytes, REDDN_SLOT_LIVE and REDDN_SLOT_RECORD in it) to a get of the
 * key. `before`: of a reply that had arrived before this request was sent. HIT: the record is in the slot,
 * key and checksum are right.
 */
enum reddn_verdict reddn_reply_judge(const struct reddn_geometry *g, const void *key, size_t key_len,
	const uint8_t *slot, size_t slot_size, const struct reddn_seen *before);

#endif
