/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/store/test-rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

void rig_look(struct rig *copy, const struct rig *rig, uint8_t *file)
{
	*copy = *rig;
	copy->file = file;
	copy->h = (struct reddn_table_header *)file;
	copy->words = (uint64_t *)(file + copy->h->buckets_off);
	copy->heap = file + copy->h->heap_off;
	copy->null = reddn_locator(copy->h->null_off, copy->header);
}

void rig_make(struct rig *rig)
{
	uint64_t heap_off = REDDN_TABLE_PAGE + round_up(rig->buckets * 16, REDDN_TABLE_PAGE);
	uint8_t *file;

	rig->size = heap_off + rig->chunk * rig->chunks;
	file = aligned_alloc(REDDN_TABLE_PAGE, rig->size);
	memset(file, 0, rig->size);
	*(struct reddn_table_header *)file = (struct reddn_table_header){.magic = REDDN_TABLE_MAGIC,
		.version = REDDN_TABLE_VERSION,
		.header_size = sizeof(struct reddn_table_header),
		.hash_seed = 5,
		.buckets = rig->buckets,
		.buckets_off = REDDN_TABLE_PAGE,
		.heap_off = heap_off,
		.heap_size = rig->chunk * rig->chunks,
		.file_size = rig->size,
		.max_key = rig->max_key,
		.max_value = rig->max_value,
		.null_off = 32,
		.header = rig->header,
		.chunk = rig->chunk,
		.evict = rig->evict,
		.live = {.epoch = 1}};
	rig_look(rig, rig, file);
	for (uint64_t b = 0; b < rig->buckets; b++)
		rig->words[2 * b] = rig->null;
}

struct store *rig_open(const struct rig *rig)
{
	struct store *s = NULL;
	char why[200] = "";

	if (store_open(&s, rig->file, rig->size, NULL, 0, why, sizeof(why)) < 0 || *why)
		fail_msg("%s", why);
	store_grace_begins(s);
	store_grace_over(s);
	return s;
}

uint32_t rig_record(const struct rig *rig, uint8_t *record, uint32_t key, uint64_t val, uint32_t val_len)
{
	uint64_t size = reddn_record_size(sizeof(key), val_len);
	struct reddn_record head = {sizeof(key), val_len, 0};
	uint8_t *bytes = record + sizeof(head);

	memset(record, 0, reddn_store_payload(rig->header, size));
	memcpy(bytes, &key, sizeof(key));
	for (uint32_t i = 0; i < val_len; i++)
		bytes[sizeof(key) + i] = (uint8_t)(val >> i % 8 * 8);
	head.sum = reddn_record_sum_of(bytes, sizeof(key) + val_len, (uint64_t)head.key_len << 32 | val_len);
	memcpy(record, &head, sizeof(head));
	return (uint32_t)(rig->header + reddn_store_payload(rig->header, size));
}

struct reddn_place rig_place(const struct rig *rig, uint32_t key)
{
	return reddn_hash_key(rig->h->hash_seed, rig->buckets, &key, sizeof(key));
}

void rig_settle(struct store *s)
{
	for (unsigned i = 0; store_work(s); i++) {
		assert_true(i < 10000);
		store_grace_begins(s);
		store_grace_over(s);
	}
}

int64_t rig_bucket(const struct rig *r, uint32_t key)
{
	struct reddn_place p = rig_place(r, key);

	for (int i = 0; i < 2; i++)
		if (r->words[2 * p.bucket[i] + 1] == reddn_mark(p.fp))
			return (int64_t)p.bucket[i];
	return -1;
}

bool rig_publish(struct store *s, const struct rig *r, uint64_t at, uint32_t key, uint32_t bytes)
{
	int64_t b = rig_bucket(r, key);
	uint64_t old;

	assert_true(b >= 0);
	old = r->words[2 * b];
	r->words[2 * b] = reddn_locator(at, bytes);
	return store_published(s, 16 * (uint64_t)b, old, r->words[2 * b]);
}

int rig_put(struct store *s, const struct rig *r, uint32_t key, uint64_t val)
{
	uint64_t at;
	uint32_t bytes;

	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	bytes = rig_record(r, r->heap + at + r->header, key, val, 16);
	for (unsigned i = 0; rig_bucket(r, key) < 0; i++) {
		assert_true(store_unplaced(s, at, bytes));
		rig_settle(s);
		if (rig_bucket(r, key) < 0 && r->h->live.state & REDDN_TABLE_FULL) {
			store_give(s, at);
			return -ENOSPC;
		}
		assert_true(i < 10);
	}
	assert_true(rig_publish(s, r, at, key, bytes));
	rig_settle(s);
	return 0;
}

void rig_delete(struct store *s, const struct rig *r, uint32_t key)
{
	uint64_t at;

	assert_int_equal(store_take(s, RIG_MESSAGE, &at), 0);
	assert_true(rig_publish(s, r, at, key, r->header));
	rig_settle(s);
}
