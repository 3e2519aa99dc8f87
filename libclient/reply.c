/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reply.h"
#include "protocol/table-hash.h"
#include "protocol/wire.h"

#include <stdatomic.h>
#include <string.h>

enum { FP = sizeof(((struct reddn_bucket *)0)->fp) };

const char *reddn_geometry_error(const struct reddn_geometry *g, uint32_t request_len)
{
	if (g->buckets < 2 || (g->buckets & (g->buckets - 1)))
		return "the number of buckets is no power of two";
	if (g->offset_len < 1 || g->offset_len > 8)
		return "bucket offsets have 1 to 8 bytes";
	if (g->buckets > UINT64_MAX / sizeof(struct reddn_bucket) ||
		(g->offset_len < 8 &&
			(g->buckets - 1) * sizeof(struct reddn_bucket) >> (8 * g->offset_len) != 0))
		return "bucket offsets are too short for the number of buckets";
	if (!g->max_key || g->max_key > REDDN_KEY_LIMIT ||
		reddn_record_size(g->max_key, g->max_value) > REDDN_RECORD_LIMIT)
		return "the limits of keys and values are out of range";
	if (!g->keys || request_len != g->keys * reddn_request_len(g))
		return "the length of requests does not fit a lookup in two buckets";
	if (g->stride < sizeof(struct reddn_record))
		return "there is no room for records";
	return NULL;
}

/* The low @bytes bytes of @value, big-endian, and zeros up to eight bytes */
static uint8_t *put(uint8_t *to, uint64_t value, unsigned bytes)
{
	value = htobe64(value << (64 - 8 * bytes));
	memcpy(to, &value, sizeof(value));
	return to + bytes;
}

void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request)
{
	struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, key_len);

	for (int i = 0; i < 2; i++) {
		request = put(request, p.fp, FP);
		request = put(request, p.bucket[i] * sizeof(struct reddn_bucket), g->offset_len);
	}
}

void reddn_reply_read(const uint8_t *slot, const uint8_t *record, struct reddn_reply *reply)
{
	memcpy(&reply->live, slot + REDDN_SLOT_LIVE, sizeof(reply->live));
	memcpy(&reply->head, record, sizeof(reply->head));
	reply->bytes = record + sizeof(reply->head);
	/* The compiler must not read them again where they are used */
	atomic_signal_fence(memory_order_seq_cst);
}

enum reddn_reply_state reddn_reply_check(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_reply *reply, size_t room, const struct reddn_seen *before)
{
	const struct reddn_table_live *live = &reply->live;
	const struct reddn_record *r = &reply->head;
	struct reddn_place wanted, stored;

	if (!r->key_len && !r->val_len) {
		if (before->valid && before->epoch != live->epoch)
			return REDDN_REPLY_STALE;
		if (before->valid && before->moves == live->moves && !(live->moves & 1))
			return REDDN_REPLY_MISS;
		return REDDN_REPLY_MOVED;
	}
	if (!r->key_len || r->key_len > g->max_key || r->val_len > g->max_value ||
		reddn_record_size(r->key_len, r->val_len) > room ||
		reddn_record_sum_of(r->key_len, r->val_len, reply->bytes) != r->sum)
		return REDDN_REPLY_OVERTAKEN;
	if (r->key_len == key_len && !memcmp(reply->bytes, key, key_len))
		return REDDN_REPLY_HIT;
	/* If the other key has the same fingerprint in the same bucket, the table cannot hold ours. If not,
	 * the writer reused the record meanwhile. */
	wanted = reddn_hash_key(g->seed, g->buckets, key, key_len);
	stored = reddn_hash_key(g->seed, g->buckets, reply->bytes, r->key_len);
	return reddn_place_same(&wanted, &stored) ? REDDN_REPLY_MISS : REDDN_REPLY_OVERTAKEN;
}
