/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h - a get on a table, without the network: the request for a key, and the meaning of a reply. The
 * formats are those of wire.h and table-format.h. Pure functions.
 */
#ifndef LIBCLIENT_REPLY_H
#define LIBCLIENT_REPLY_H

#include "libclient/short.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a client needs to know of a table. */
struct reddn_geometry {
	uint64_t seed;
	uint64_t buckets;
	uint32_t max_key;   /* bytes */
	uint32_t max_value; /* bytes */
	uint8_t offset_len; /* bytes of a bucket offset in a request */
	uint8_t keys;       /* of a request, >= 1 */
	uint32_t stride;    /* bytes from the record of a key in a slot to that of the next */
};

/** Check a geometry that a server sent. NULL, or why no table has it. */
const char *reddn_geometry_error(const struct reddn_geometry *g, uint32_t request_len);

/** Bytes of the request for a key. */
static inline uint32_t reddn_request_len(const struct reddn_geometry *g)
{
	return 2u * (uint32_t)(sizeof(((struct reddn_bucket *)0)->fp) + g->offset_len);
}

/** Room for the longest request, which reddn_request_build() may write whatever the length is. */
enum { REDDN_REQUEST_ROOM = 28 };

/** Write the request for a key at @p, reddn_request_len() bytes, and nothing of meaning behind it. */
static inline void reddn_request_write(
	const struct reddn_geometry *g, const struct reddn_place *p, uint8_t *request)
{
	const size_t fp_len = sizeof(((struct reddn_bucket *)0)->fp), offset_len = g->offset_len;
	/* a bucket of 16 bytes; at most 60, as an offset has a byte */
	unsigned shift = 64 - 8 * (unsigned)offset_len + 4;
	/* big-endian, and zeros up to eight bytes */
	uint64_t fp = htobe64(p->fp << (64 - 8 * fp_len)), offset;

	_Static_assert(sizeof(struct reddn_bucket) == 1 << 4, "the shift of an offset");
	for (int i = 0; i < 2; i++) {
		offset = htobe64(p->bucket[i] << shift);
		memcpy(request, &fp, sizeof(fp));
		memcpy(request + fp_len, &offset, sizeof(offset));
		request += fp_len + offset_len;
	}
}

/** The same for a key. */
void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request);

enum reddn_reply_state {
	REDDN_REPLY_HIT,
	REDDN_REPLY_MISS,
	REDDN_REPLY_MOVED,     /* no record, but entries moved or may have moved: ask again */
	REDDN_REPLY_OVERTAKEN, /* the record changed while the NIC read it: ask again */
	REDDN_REPLY_STALE,     /* no record; another table has replaced the one of this connection */
};

/** The live line of an earlier reply. */
struct reddn_seen {
	bool valid;
	uint64_t moves;
	uint64_t epoch;
};

/** What a reply slot has of lengths and counters, read once: a server may write to the slot at any time. */
struct reddn_reply {
	uint64_t moves, epoch;    /* of the live line */
	struct reddn_record head; /* its lengths are those that were checked */
	const uint8_t *bytes;     /* key and value in the slot; only these may still change */
};

/** The lengths of a record as its checksum takes them. */
static inline uint64_t reddn_reply_lengths(const struct reddn_record *r)
{
	return (uint64_t)r->key_len << 32 | r->val_len;
}

/** Read the head of the reply to a key whose record is at @record in a slot, which has REDDN_SLOT_LIVE in it.
 */
static inline void reddn_reply_read(const uint8_t *slot, const uint8_t *record, struct reddn_reply *reply)
{
	const struct reddn_table_live *live = (const struct reddn_table_live *)(slot + REDDN_SLOT_LIVE);

	reply->moves = live->moves;
	reply->epoch = live->epoch;
	memcpy(&reply->head, record, sizeof(reply->head));
	reply->bytes = record + sizeof(reply->head);
	/* The compiler must not read them again where they are used */
	atomic_signal_fence(memory_order_seq_cst);
}

/**
 * True if the reply has a whole record whose key has @key_len bytes: with a right checksum, and no longer
 * than the @room bytes that its slot has for it. The length is one that keys may have.
 */
static inline bool reddn_reply_is_whole(
	const struct reddn_geometry *g, size_t key_len, const struct reddn_reply *reply, size_t room)
{
	const struct reddn_record *r = &reply->head;

	return r->key_len == key_len && r->val_len <= g->max_value &&
	       reddn_record_size(key_len, r->val_len) <= room &&
	       reddn_record_sum_of(reply->bytes, key_len + r->val_len, reddn_reply_lengths(r)) == r->sum;
}

/**
 * What a reply is that has no such record, or one with another key. @before comes from a reply that had
 * arrived before this request was sent.
 */
enum reddn_reply_state reddn_reply_check_rest(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_reply *reply, size_t room, const struct reddn_seen *before);

/** True if it is a hit: the slot has the record of the key, whole. */
static inline bool reddn_reply_is_hit(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_reply *reply, size_t room)
{
	return reddn_reply_is_whole(g, key_len, reply, room) && short_same(reply->bytes, key, key_len);
}

/** Check the reply to a get of the key. */
static inline enum reddn_reply_state reddn_reply_check(const struct reddn_geometry *g, const void *key,
	size_t key_len, const struct reddn_reply *reply, size_t room, const struct reddn_seen *before)
{
	return reddn_reply_is_hit(g, key, key_len, reply, room)
		       ? REDDN_REPLY_HIT
		       : reddn_reply_check_rest(g, key, key_len, reply, room, before);
}

#endif
