/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a writer changes at the same time. */
#include "libclient/public.h"
#include "libclient/reddn-table.h"
#include "libclient/table/impl.h"
#include "protocol/table-hash.h"
#include "util/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum {
	/* A reader tries again so often, and yields in between, before it returns -EAGAIN or -EBADMSG. */
	READ_TRIES = 1000,
	/*
	 * A writer completes a record before a bucket leads to it. So a record that is wrong is damaged if
	 * neither its bucket nor its own head changes. One look more does not show that: a writer may reuse
	 * the memory at once, and lead the bucket to it again.
	 */
	SAME_TRIES = 8,
};

/* What changes while a writer reuses the memory of a record. */
struct seen {
	uint64_t bucket[4], head[2];
};

bool reddn_table_record_is_whole(const struct reddn_table *t, const struct reddn_record *r, uint32_t len)
{
	return r->key_len && r->key_len <= t->geo.max_key && r->val_len <= t->geo.max_value &&
	       reddn_record_padded(t->geo.header + reddn_record_size(r->key_len, r->val_len)) == len &&
	       reddn_record_sum(r) == r->sum;
}

bool reddn_table_locator_ok(const struct reddn_table *t, uint64_t locator)
{
	uint64_t off = reddn_locator_off(locator), len = reddn_locator_len(locator);

	if (len > reddn_table_longest(&t->geo))
		return false;
	if (t->geo.header)
		return locator == t->null_locator || reddn_store_extent_of(t, locator);
	return off % REDDN_HEAP_GRANULE == 0 && off == reddn_untagged(off) &&
	       len >= sizeof(struct reddn_record) && len == reddn_record_padded(len) &&
	       off <= t->geo.heap_size && len <= t->geo.heap_size - off;
}

/*
 * Copy the record at `locator` and check it. If a writer reuses its memory at the same time, the checksum is
 * wrong: -EBADMSG.
 */
static int read_record(struct reddn_table *t, uint64_t locator)
{
	struct reddn_record *r = t->scratch;
	uint32_t len = reddn_locator_len(locator);
	const _Atomic uint64_t *from;

	if (!reddn_table_locator_ok(t, locator))
		return -EBADMSG;
	from = (const _Atomic uint64_t *)(t->heap + reddn_locator_off(locator));
	for (uint32_t i = 0; i < (len + 7) / 8; i++)
		((uint64_t *)r)[i] = atomic_load_explicit((_Atomic uint64_t *)&from[i], memory_order_relaxed);
	if (t->geo.header) {
		t->expires = reddn_store_expiry((uint8_t *)r + t->geo.header);
		memmove(r, (uint8_t *)r + t->geo.header, len - t->geo.header);
	}
	return reddn_table_record_is_whole(t, r, len) ? 0 : -EBADMSG;
}

/* Of a store: its key is absent. */
static bool has_no_record(const struct reddn_table *t, uint64_t locator)
{
	return t->geo.header && !reddn_store_has_record(t, locator);
}

/* The record that was read last: its key is absent, as for gets. */
static bool has_expired(const struct reddn_table *t)
{
	return t->expires && t->expires <= clock_read_ns(CLOCK_REALTIME) / 1000000;
}

/* Search both buckets once. 0, REDDN_TABLE_MISS, or -EBADMSG: a record did not match its bucket. */
static int look(struct reddn_table *t, const struct reddn_place *p, const void *key, size_t key_len)
{
	int result = REDDN_TABLE_MISS;

	for (int i = 0; i < 2; i++) {
		struct reddn_place stored;
		uint64_t locator;

		if (reddn_store_mark(t, p->bucket[i]) != reddn_mark(p->fp))
			continue;
		locator = reddn_word_get(reddn_table_locator(t, p->bucket[i]));
		if (has_no_record(t, locator))
			continue;
		if (read_record(t, locator) < 0) {
			result = -EBADMSG;
			continue;
		}
		if (has_expired(t))
			continue;
		if (t->scratch->key_len == key_len && !memcmp(t->scratch->bytes, key, key_len))
			return 0;
		stored = reddn_table_place(t, t->scratch->bytes, t->scratch->key_len);
		if (!reddn_place_same(&stored, p))
			result = -EBADMSG;
	}
	return result;
}

/* Whether both buckets and the record read last are as in `*last`. If not, `*last` is made so. */
static bool nothing_changed(const struct reddn_table *t, const uint64_t bucket[2], struct seen *last)
{
	struct seen now;

	atomic_thread_fence(memory_order_acquire);
	for (int i = 0; i < 2; i++) {
		now.bucket[2 * i] = reddn_word_get(reddn_table_locator(t, bucket[i]));
		now.bucket[2 * i + 1] = reddn_word_get(reddn_table_mark(t, bucket[i]));
	}
	memcpy(now.head, t->scratch, sizeof(now.head));
	if (!memcmp(&now, last, sizeof(now)))
		return true;
	*last = now;
	return false;
}

PUBLIC int reddn_table_get(
	struct reddn_table *t, const void *key, size_t key_len, const void **val, size_t *val_len)
{
	struct seen last = {0};
	struct reddn_place p;
	int same = 0;

	if (!key_len)
		return -EINVAL;
	if (key_len > t->geo.max_key)
		return -EMSGSIZE;
	p = reddn_table_place(t, key, key_len);
	for (int try = 0;; try++) {
		uint64_t before = reddn_word_get(reddn_live_word(&t->live->moves));
		int r = look(t, &p, key, key_len);

		if (r == 0) {
			*val = t->scratch->bytes + key_len;
			*val_len = t->scratch->val_len;
			return 0;
		}
		if (r == REDDN_TABLE_MISS && !(before & 1) &&
			reddn_word_get(reddn_live_word(&t->live->moves)) == before)
			return REDDN_TABLE_MISS;
		same = r < 0 && nothing_changed(t, p.bucket, &last) ? same + 1 : 0;
		if (t->writer || try == READ_TRIES || same == SAME_TRIES)
			return r < 0 ? r : -EAGAIN;
		sched_yield();
	}
}

PUBLIC int reddn_table_next(struct reddn_table *t, uint64_t *pos, struct reddn_table_entry *e)
{
	while (*pos < t->geo.buckets) {
		uint64_t b = (*pos)++;
		struct seen last = {0};
		int same = 0;

		for (int try = 0; reddn_store_mark(t, b); try++) {
			uint64_t locator = reddn_word_get(reddn_table_locator(t, b));
			const struct reddn_record *r = t->scratch;

			if (has_no_record(t, locator))
				break;
			if (read_record(t, locator) == 0) {
				if (has_expired(t))
					break;
				*e = (struct reddn_table_entry){
					r->bytes, r->key_len, r->bytes + r->key_len, r->val_len, t->expires};
				return 0;
			}
			same = nothing_changed(t, (const uint64_t[]){b, b}, &last) ? same + 1 : 0;
			if (t->writer || try == READ_TRIES || same == SAME_TRIES)
				return -EBADMSG;
			sched_yield();
		}
	}
	return REDDN_TABLE_END;
}
