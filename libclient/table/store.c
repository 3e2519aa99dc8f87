/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores: how they are laid out, and what is checked in one. reddnd writes them (reddnd/store); here they are
 * made and read.
 */
#include "libclient/public.h"
#include "libclient/table/impl.h"
#include "protocol/table-hash.h"
#include "util/pow2.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { LINE = REDDN_STORE_CHUNK_LINE, NULL_OFF = LINE / 2, CHUNKS = 4096 };

static const uint64_t CHUNK = 64 << 10;
static const uint64_t MAX_HEAP = 1ull << 38; /* as of reddnd/store/pool.h */

uint64_t reddn_store_extent(const struct reddn_table_header *h)
{
	uint64_t bytes =
		h->header + reddn_store_payload(h->header, reddn_record_size(h->max_key, h->max_value));

	return (bytes + LINE - 1) / LINE * LINE;
}

/* A request names a bucket by the fingerprint and an offset of at least two bytes: both are behind the header
 * of an extent, which has as many bytes. */
static uint32_t header_of(uint64_t buckets)
{
	uint32_t width = 2;

	while ((buckets * sizeof(struct reddn_bucket) - 1) >> 8 * width)
		width++;
	return 6 + width;
}

int reddn_store_plan(struct reddn_table_header *h, const struct reddn_table_options *opt, uint64_t capacity,
	uint64_t *heap, char *err, size_t errlen)
{
	uint64_t extent, size;

	h->header = header_of(h->buckets);
	h->null_off = NULL_OFF;
	h->evict = opt->evict ? 1 : 0;
	extent = reddn_store_extent(h);
	/* Those that sessions hold, and those that rest */
	size = opt->heap_size ? opt->heap_size : (capacity + capacity / 8 + 256) * extent;
	h->chunk = pow2_at_least(8 * extent > CHUNK ? 8 * extent : CHUNK);
	while (size / h->chunk > CHUNKS)
		h->chunk *= 2;
	*heap = (size + h->chunk - 1) / h->chunk * h->chunk;
	if (h->header > REDDN_STORE_HEADER_MAX || *heap > MAX_HEAP)
		return reddn_fail(-EINVAL, err, errlen,
			"a store with a heap of %" PRIu64 " bytes: up to %" PRIu64, *heap, MAX_HEAP);
	return 0;
}

/* The next extent from *@off on, all of which have @extent bytes. False: the heap has no more. */
static bool next_extent(struct reddn_table *t, uint64_t extent, uint64_t *off)
{
	for (;; *off += extent) {
		uint64_t chunk = *off & ~(t->geo.chunk - 1);

		if (*off != chunk && *off + extent > chunk + t->geo.chunk)
			*off = chunk += t->geo.chunk;
		if (*off == chunk)
			*off += LINE;
		if (t->geo.heap_size - chunk < t->geo.chunk)
			return false;
		if (*off != reddn_untagged(*off))
			continue;
		((struct reddn_store_chunk *)(t->heap + chunk))->extent = extent;
		return true;
	}
}

static void put_entry(
	struct reddn_table *t, const struct reddn_table_entry *e, uint64_t off, uint64_t version)
{
	struct reddn_record head = {(uint32_t)e->key_len, (uint32_t)e->val_len, 0};
	uint8_t *record = t->heap + off + t->geo.header, *bytes = record + sizeof(head);

	*(uint64_t *)(t->heap + off) = version;
	memcpy(bytes, e->key, e->key_len);
	memcpy(bytes + e->key_len, e->val, e->val_len);
	head.sum =
		reddn_record_sum_of(bytes, e->key_len + e->val_len, (uint64_t)e->key_len << 32 | e->val_len);
	memcpy(record, &head, sizeof(head));
}

int reddn_store_fill(struct reddn_table *t, struct reddn_table *from, char *err, size_t errlen)
{
	uint64_t extent = reddn_store_extent(&t->geo), off = 0, pos = 0, n = 0;
	struct reddn_table_entry e;
	int r;

	for (; (r = reddn_table_next(from, &pos, &e)) == 0; off += extent) {
		uint64_t b = pos - 1, size = reddn_record_size(e.key_len, e.val_len);

		if (e.key_len > t->geo.max_key || e.val_len > t->geo.max_value)
			return reddn_fail(-EMSGSIZE, err, errlen,
				"key of %zu bytes (up to %u), value of %zu bytes (up to %u)", e.key_len,
				t->geo.max_key, e.val_len, t->geo.max_value);
		if (!next_extent(t, extent, &off))
			return reddn_fail(-ENOSPC, err, errlen,
				"the heap has room for %" PRIu64 " of %" PRIu64 " entries", n,
				from->live->entries);
		put_entry(t, &e, off, ++n);
		reddn_word_set(reddn_table_locator(t, b),
			reddn_locator(off, t->geo.header + reddn_store_payload(t->geo.header, size)));
		reddn_word_set(reddn_table_mark(t, b), reddn_word_get(reddn_table_mark(from, b)));
	}
	if (r < 0)
		return reddn_fail(
			r, err, errlen, "the record of bucket %" PRIu64 " of the table is damaged", pos - 1);
	((struct reddn_store_journal *)(t->map + REDDN_STORE_JOURNAL))->versions = n + 1;
	t->geo.live.entries = n;
	return 0;
}

int reddn_store_check(const struct reddn_table_header *h, char *err, size_t errlen)
{
	if (h->header < REDDN_STORE_HEADER_MIN || h->header > REDDN_STORE_HEADER_MAX)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: %u bytes before each record", h->header);
	if (h->chunk < REDDN_TABLE_PAGE || h->chunk & (h->chunk - 1) || h->chunk > h->heap_size)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: chunks of %" PRIu64 " bytes", h->chunk);
	if (h->null_off % 8 || h->null_off < 8 || h->null_off + h->header > LINE)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: null extent at %" PRIu64, h->null_off);
	return 0;
}

uint64_t reddn_store_extent_of(const struct reddn_table *t, uint64_t locator)
{
	uint64_t off = reddn_locator_off(locator), chunk = off & ~(t->geo.chunk - 1), extent;

	if (off > t->geo.heap_size || t->geo.chunk > t->geo.heap_size - chunk || off - chunk < LINE ||
		off != reddn_untagged(off))
		return 0;
	extent = reddn_word_get((const _Atomic uint64_t *)(t->heap + chunk));
	if (!extent || extent % LINE || extent > t->geo.chunk - LINE || (off - chunk - LINE) % extent ||
		extent > t->geo.chunk - (off - chunk) || reddn_locator_len(locator) > extent)
		return 0;
	return extent;
}

bool reddn_store_has_record(const struct reddn_table *t, uint64_t locator)
{
	uint32_t len = reddn_locator_len(locator);

	return len != t->geo.header && reddn_store_length_ok(t->geo.header, len);
}

uint64_t reddn_store_mark(const struct reddn_table *t, uint64_t bucket)
{
	uint64_t mark = reddn_word_get(reddn_table_mark(t, bucket)), n;

	if (mark || !t->geo.header)
		return mark;
	n = reddn_word_get((const _Atomic uint64_t *)&t->store_journal->count);
	for (uint64_t i = 0; i < n && i < REDDN_STORE_MOVES; i++) {
		const struct reddn_store_move *v = &t->store_journal->move[i];

		if (v->from == bucket &&
			(v->to == bucket || (v->to < t->geo.buckets &&
						    reddn_word_get(reddn_table_mark(t, v->to)) != v->mark)))
			return v->mark;
	}
	return 0;
}
