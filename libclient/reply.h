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

/** Write the request for a key, reddn_request_len() bytes, and nothing of meaning behind it. */
static inline void reddn_request_build(
	const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request)
{
	struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, key_len);
	const size_t fp_len = sizeof(((struct reddn_bucket *)0)->fp);
	unsigned shift = 64 - 8 * g->offset_len;
	/* big-endian, and zeros up to eight bytes */
	uint64_t fp = htobe64(p.fp << (64 - 8 * fp_len)), offset;

	for (int i = 0; i < 2; i++) {
		offset = htobe64(p.bucket[i] * sizeof(struct reddn_bucket) << shift);
		memcpy(request, &fp, sizeof(fp));
		memcpy(request + fp_len, &offset, sizeof(offset));
		request += fp_len + g->offset_len;
	}
}

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
	struct reddn_record head; /* its lengths are those that reddn_reply_check() has checked */
	const uint8_t *bytes;     /* key and value in the slot; only these may still change */
};

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

/** reddn_reply_check() of a reply without a record. */
enum reddn_reply_state reddn_reply_check_none(
	uint64_t moves, uint64_t epoch, const struct reddn_seen *before);
/** The same of a whole record with another key. */
enum reddn_reply_state reddn_reply_check_other(const struct reddn_geometry *g, const void *key,
	size_t key_len, const uint8_t *other, size_t other_len);

/**
 * Check the reply to a get of the key, whose record has @room bytes in the slot. @before comes from a reply
 * that had arrived before this request was sent. HIT: the slot holds the record, and its key and checksum are
 * right.
 */
static inline enum reddn_reply_state reddn_reply_check(const struct reddn_geometry *g, const void *key,
	size_t key_len, const struct reddn_reply *reply, size_t room, const struct reddn_seen *before)
{
	const struct reddn_record *r = &reply->head;

	if (!r->key_len && !r->val_len)
		return reddn_reply_check_none(reply->moves, reply->epoch, before);
	if (!r->key_len || r->key_len > g->max_key || r->val_len > g->max_value ||
		reddn_record_size(r->key_len, r->val_len) > room ||
		reddn_record_sum_of(r->key_len, r->val_len, reply->bytes) != r->sum)
		return REDDN_REPLY_OVERTAKEN;
	if (r->key_len == key_len && short_same(reply->bytes, key, key_len))
		return REDDN_REPLY_HIT;
	return reddn_reply_check_other(g, key, key_len, reply->bytes, r->key_len);
}

#endif
