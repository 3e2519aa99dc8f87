/* SPDX-License-Identifier: BSD-2-Clause */
/* What a new store begins with: versions, and entries of a table. */
#include "libclient/public.h"
#include "libclient/table/impl.h"
#include "protocol/table-hash.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { LINE = REDDN_STORE_CHUNK_LINE };

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

/* No store has a put in each of these times for all of its life. Until 2116 JSON readers, whose numbers are
 * of 53 bits, get such versions right. */
enum { TIME_SHIFT = 9 }; /* 512 ns */

/* 0 is that of the null extent */
void reddn_store_begin(struct reddn_table *t)
{
	t->store_journal->versions = 1 + (t->geo.live.epoch >> TIME_SHIFT);
}

int reddn_store_fill(struct reddn_table *t, struct reddn_table *from, char *err, size_t errlen)
{
	struct reddn_store_journal *journal = t->store_journal;
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
		put_entry(t, &e, off, journal->versions++);
		n++;
		reddn_word_set(reddn_table_locator(t, b),
			reddn_locator(off, t->geo.header + reddn_store_payload(t->geo.header, size)));
		reddn_word_set(reddn_table_mark(t, b), reddn_word_get(reddn_table_mark(from, b)));
	}
	if (r < 0)
		return reddn_fail(
			r, err, errlen, "the record of bucket %" PRIu64 " of the table is damaged", pos - 1);
	t->geo.live.entries = n;
	return 0;
}
