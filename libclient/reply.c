/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reply.h"

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

void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request)
{
	const struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, key_len);

	reddn_request_write(g, &p, request);
}

/* Without a record */
static enum reddn_reply_state check_none(uint64_t moves, uint64_t epoch, const struct reddn_seen *before)
{
	if (before->valid && before->epoch != epoch)
		return REDDN_REPLY_STALE;
	if (before->valid && before->moves == moves && !(moves & 1))
		return REDDN_REPLY_MISS;
	return REDDN_REPLY_MOVED;
}

/* If the other key has the same fingerprint in the same bucket, the table cannot hold ours. If not, the
 * writer reused the record meanwhile. */
static enum reddn_reply_state check_other(const struct reddn_geometry *g, const void *key, size_t key_len,
	const uint8_t *other, size_t other_len)
{
	struct reddn_place wanted = reddn_hash_key(g->seed, g->buckets, key, key_len),
			   stored = reddn_hash_key(g->seed, g->buckets, other, other_len);

	return reddn_place_same(&wanted, &stored) ? REDDN_REPLY_MISS : REDDN_REPLY_OVERTAKEN;
}

enum reddn_reply_state reddn_reply_check_rest(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_reply *reply, size_t room, const struct reddn_seen *before)
{
	const struct reddn_record *r = &reply->head;

	if (!r->key_len && !r->val_len)
		return check_none(reply->moves, reply->epoch, before);
	/* a key that is the same now was another when it was checked first */
	if (!r->key_len || r->key_len > g->max_key || r->val_len > g->max_value ||
		reddn_record_size(r->key_len, r->val_len) > room ||
		reddn_record_sum_of(reply->bytes, (size_t)r->key_len + r->val_len, reddn_reply_lengths(r)) !=
			r->sum ||
		(r->key_len == key_len && memcmp(reply->bytes, key, key_len) == 0))
		return REDDN_REPLY_OVERTAKEN;
	return check_other(g, key, key_len, reply->bytes, r->key_len);
}
