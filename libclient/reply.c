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

enum reddn_reply_state reddn_reply_check_none(uint64_t moves, uint64_t epoch, const struct reddn_seen *before)
{
	if (before->valid && before->epoch != epoch)
		return REDDN_REPLY_STALE;
	if (before->valid && before->moves == moves && !(moves & 1))
		return REDDN_REPLY_MISS;
	return REDDN_REPLY_MOVED;
}

/* If the other key has the same fingerprint in the same bucket, the table cannot hold ours. If not, the
 * writer reused the record meanwhile. */
enum reddn_reply_state reddn_reply_check_other(const struct reddn_geometry *g, const void *key,
	size_t key_len, const uint8_t *other, size_t other_len)
{
	struct reddn_place wanted = reddn_hash_key(g->seed, g->buckets, key, key_len),
			   stored = reddn_hash_key(g->seed, g->buckets, other, other_len);

	return reddn_place_same(&wanted, &stored) ? REDDN_REPLY_MISS : REDDN_REPLY_OVERTAKEN;
}
