/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reply.h"

const char *reddn_geometry_error(const struct reddn_geometry *g, unsigned probes, uint32_t request_len)
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
	if (!g->keys || request_len != g->keys * probes * reddn_probe_len(g))
		return probes == 1 ? "the length of requests does not fit a put in a bucket"
				   : "the length of requests does not fit a lookup in two buckets";
	if (g->header && g->header < sizeof(uint64_t))
		return "there is no room for the version of a record";
	/* those that are put may have fewer bytes than both limits allow */
	if (!g->part && g->room < (probes == 1 ? sizeof(struct reddn_record)
					       : reddn_record_size(g->max_key, g->max_value)))
		return "there is no room for records";
	return NULL;
}

void reddn_request_build(const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request)
{
	const struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, key_len);

	reddn_request_write(g, &p, request);
}

void reddn_exists_build(
	const struct reddn_geometry *g, const void *key, size_t key_len, uint8_t *request, uint16_t *mark)
{
	const struct reddn_place p = reddn_hash_key(g->seed, g->buckets, key, key_len);

	*mark = (uint16_t)p.fp;
	if (g->part == REDDN_PART_EXACT) {
		reddn_request_write(g, &p, request);
		return;
	}
	for (int i = 0; i < 2; i++) {
		uint64_t at = p.bucket[i] * sizeof(struct reddn_bucket) + REDDN_PART_END - g->part;

		for (unsigned byte = g->offset_len; byte--; at >>= 8)
			request[byte] = (uint8_t)at;
		request += g->offset_len;
	}
}

/* That of no record in a store, whose parts begin with the length */
static bool part_is_empty(const struct reddn_geometry *g, const uint8_t *part)
{
	return g->header && !part[0] && !part[1] && part[2] == g->header;
}

bool reddn_parts_show(const struct reddn_geometry *g, uint16_t mark, const uint8_t *parts)
{
	bool shown = false;

	if (g->part == REDDN_PART_EXACT)
		return parts[0] || parts[g->part];
	for (int i = 0; i < 2; i++, parts += g->part) {
		const uint8_t *low = parts + g->part - sizeof(mark);

		shown |= (low[0] | low[1] << 8) == mark && !part_is_empty(g, parts);
	}
	return shown;
}

/* Without a record */
static enum reddn_reply_state check_none(const struct reddn_seen *now, const struct reddn_seen *before)
{
	if (before->moves == now->moves && !(now->moves & 1))
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

enum reddn_reply_state reddn_reply_without(const struct reddn_geometry *g, const void *key, size_t key_len,
	const uint8_t *record, const struct reddn_seen *now, const struct reddn_seen *before)
{
	const struct reddn_head h = reddn_head_read(record);
	const uint8_t *bytes = record + sizeof(h);

	if (!reddn_seen_current(now, before))
		return REDDN_REPLY_STALE;
	if (!h.key_len && !h.val_len)
		return check_none(now, before);
	/* a key that is the same now was another when it was checked first */
	if (!h.key_len || !reddn_head_fits(g, &h) || !reddn_head_is_right(&h, bytes) ||
		(h.key_len == key_len && memcmp(bytes, key, key_len) == 0))
		return REDDN_REPLY_OVERTAKEN;
	return check_other(g, key, key_len, bytes, h.key_len);
}

/* The first @end bytes of key and value go to @add */
static void apart_add(const struct reddn_apart *r, size_t key_len, size_t end,
	XXH_errorcode (*add)(XXH3_state_t *, const void *, size_t), XXH3_state_t *state)
{
	const size_t first = end < key_len ? end : key_len, left = end - first;
	const size_t second = left < r->room ? left : r->room;

	add(state, r->record + sizeof(struct reddn_head), first);
	add(state, r->value, second);
	add(state, r->rest, left - second);
}

uint64_t reddn_apart_sum(const struct reddn_apart *r, uint32_t key_len, uint32_t val_len)
{
	XXH3_state_t state = {0};

	XXH3_64bits_reset_withSeed(&state, (uint64_t)key_len << 32 | val_len);
	apart_add(r, key_len, (size_t)key_len + val_len, XXH3_64bits_update, &state);
	return XXH3_64bits_digest(&state);
}

/* As check_other(). A hash of bytes that were overwritten is another one. */
static enum reddn_reply_state apart_other(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_apart *r, const struct reddn_head *h)
{
	struct reddn_place wanted = reddn_hash_key(g->seed, g->buckets, key, key_len), stored;
	XXH3_state_t state = {0};

	XXH3_128bits_reset_withSeed(&state, g->seed);
	apart_add(r, key_len, h->key_len, XXH3_128bits_update, &state);
	stored = reddn_hash_place(XXH3_128bits_digest(&state), g->buckets);
	return reddn_place_same(&wanted, &stored) ? REDDN_REPLY_MISS : REDDN_REPLY_OVERTAKEN;
}

static enum reddn_reply_state apart_longer(const struct reddn_apart *r, const struct reddn_head *h)
{
	const bool again = *r->longer == h->sum;

	*r->longer = h->sum;
	return again ? REDDN_REPLY_TOO_LONG : REDDN_REPLY_OVERTAKEN;
}

enum reddn_reply_state reddn_reply_into(const struct reddn_geometry *g, const void *key, size_t key_len,
	const struct reddn_apart *r, const struct reddn_seen *now, const struct reddn_seen *before,
	size_t *len)
{
	const struct reddn_head h = reddn_head_read(r->record);

	*len = h.val_len;
	if (!reddn_seen_current(now, before))
		return REDDN_REPLY_STALE;
	if (!h.key_len && !h.val_len)
		return check_none(now, before);
	if (!h.key_len || !reddn_head_fits(g, &h))
		return REDDN_REPLY_OVERTAKEN;
	if (h.key_len != key_len || memcmp(r->record + sizeof(h), key, key_len) != 0)
		return apart_other(g, key, key_len, r, &h);
	if (h.val_len > r->room)
		return apart_longer(r, &h);
	return reddn_apart_sum(r, h.key_len, h.val_len) == h.sum ? REDDN_REPLY_EXISTS : REDDN_REPLY_OVERTAKEN;
}

enum reddn_reply_state reddn_reply_parts(const struct reddn_geometry *g, uint16_t mark, const uint8_t *parts,
	const struct reddn_seen *now, const struct reddn_seen *before)
{
	if (!reddn_seen_current(now, before))
		return REDDN_REPLY_STALE;
	return reddn_parts_show(g, mark, parts) ? REDDN_REPLY_EXISTS : check_none(now, before);
}
