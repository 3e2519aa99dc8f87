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
static const uint64_t MAX_HEAP = 1ull << 38;    /* as of reddnd/store/pool.h */
static const uint64_t MAX_PAYLOAD = 1ull << 20; /* as of "most" of the program store-put */

uint64_t reddn_store_extent(const struct reddn_table_header *h)
{
	uint64_t bytes =
		h->header + reddn_store_payload(h->header, reddn_record_size(h->max_key, h->max_value));

	return (bytes + LINE - 1) / LINE * LINE;
}

/* A request names a bucket by the fingerprint and an offset of at least two bytes, and what is replaced by
 * its version: the header of an extent has as many bytes. */
static uint32_t header_of(uint64_t buckets)
{
	uint32_t width = 2;

	while ((buckets * sizeof(struct reddn_bucket) - 1) >> 8 * width)
		width++;
	return 6 + width + REDDN_STORE_VERSION;
}

int reddn_store_plan(struct reddn_table_header *h, const struct reddn_table_options *opt, uint64_t capacity,
	uint64_t *heap, char *err, size_t errlen)
{
	uint64_t extent, size, payload;

	h->header = header_of(h->buckets);
	h->null_off = NULL_OFF;
	h->evict = opt->evict ? 1 : 0;
	payload = reddn_store_payload(h->header, reddn_record_size(h->max_key, h->max_value));
	if (payload > MAX_PAYLOAD)
		return reddn_fail(-EINVAL, err, errlen,
			"max_key %u, max_value %u: a record of a store has up to %" PRIu64
			" bytes, and such a one has %" PRIu64,
			h->max_key, h->max_value, MAX_PAYLOAD, payload);
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

int reddn_store_check(const struct reddn_table_header *h, char *err, size_t errlen)
{
	if (h->header < REDDN_STORE_HEADER_MIN || h->header > REDDN_STORE_HEADER_MAX)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: %u bytes before each record", h->header);
	if (h->chunk < REDDN_TABLE_PAGE || h->chunk & (h->chunk - 1) || h->chunk > h->heap_size)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: chunks of %" PRIu64 " bytes", h->chunk);
	if (h->null_off % 8 || h->null_off < 8 || h->null_off > LINE - h->header)
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

/* The mark, or that of the move that has taken it away; 0 */
static uint64_t mark_of(const struct reddn_table *t, uint64_t bucket)
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

/* In a store, what can be no mark costs its entry; store_open() ends it */
uint64_t reddn_store_mark(const struct reddn_table *t, uint64_t bucket)
{
	uint64_t mark = mark_of(t, bucket);

	return t->geo.header && mark != reddn_mark(reddn_hash_fp(mark)) ? 0 : mark;
}
