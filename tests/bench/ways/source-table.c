/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/bench/ways/hopscotch.h"
#include "tests/bench/ways/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
	struct source source;
	struct reddn_table *writer; /* for sets */
	struct hopscotch hopscotch; /* the memory of source.array */
	int access;                 /* of clients, besides READs */
	uint64_t free;              /* SOURCE_SHARED: the part of the heap from here on is nobody's */
};

static const struct reddn_table_header *header(const struct table *t)
{
	return t->source.file.mem;
}

/* This process is the only writer, if there is one, so buckets and records are as they should be. The NIC
 * reads the record later: its memory is reused late, and the client compares the checksum. */
static int get(struct source *s, const void *key, uint32_t key_len, struct ibv_sge *answer)
{
	struct table *t = (struct table *)s;
	const struct reddn_table_header *h = header(t);
	struct reddn_place p = reddn_hash_key(h->hash_seed, h->buckets, key, key_len);
	const uint8_t *file = s->file.mem;

	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *bucket = file + h->buckets_off + p.bucket[i] * sizeof(struct reddn_bucket);
		const struct reddn_record *rec;
		uint64_t word[2];

		memcpy(word, bucket, sizeof(word));
		if (word[1] != reddn_mark(p.fp))
			continue;
		rec = (const void *)(file + h->heap_off + reddn_locator_off(word[0]));
		if (rec->key_len != key_len || memcmp(rec->bytes, key, key_len) != 0)
			continue;
		*answer = (struct ibv_sge){(uintptr_t)rec,
			(uint32_t)reddn_record_size(rec->key_len, rec->val_len), s->file.mr->lkey};
		return 0;
	}
	return REDDN_MISS;
}

static int set(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len,
	const uint64_t *sum)
{
	struct reddn_table *writer = ((struct table *)s)->writer;
	struct ibv_sge is;

	if (sum) {
		int r = get(s, key, key_len, &is);

		if (r)
			return r;
		if (((const struct reddn_record *)(uintptr_t)is.addr)->sum != *sum)
			return REDDN_CONFLICT;
	}
	_Static_assert((int)REDDN_TABLE_MISS == (int)REDDN_MISS, "an answer has it");
	return value ? reddn_table_put(writer, key, key_len, value, val_len)
		     : reddn_table_delete(writer, key, key_len);
}

static int give(struct source *s, uint32_t n, struct link_range *range)
{
	struct table *t = (struct table *)s;
	const struct reddn_table_header *h = header(t);
	const uint64_t bytes = n * (((uint64_t)s->reply_max + 63) & ~63ull);

	if (bytes > h->heap_size - t->free)
		return -ENOSPC;
	*range = (struct link_range){htobe64((uintptr_t)s->file.mem + h->heap_off + t->free), htobe64(bytes),
		htobe32(s->file.mr->rkey)};
	t->free += bytes;
	return 0;
}

/* The end of all records. */
static uint64_t end_of_records(const struct table *t)
{
	const struct reddn_table_header *h = header(t);
	const struct reddn_bucket *buckets = (const void *)((const uint8_t *)h + h->buckets_off);
	uint64_t end = 0;

	for (uint64_t i = 0; i < h->buckets; i++) {
		uint64_t word;

		memcpy(&word, &buckets[i], sizeof(word));
		if (end < reddn_locator_off(word) + reddn_locator_len(word))
			end = reddn_locator_off(word) + reddn_locator_len(word);
	}
	return (end + 63) & ~63ull;
}

static int serve(struct source *s, struct ibv_pd *pd, enum link_way way)
{
	struct table *t = (struct table *)s;
	int r = source_register(&s->file, pd, t->access);

	if (r < 0 || way == LINK_TABLE || way == LINK_REQUESTS)
		return r;
	if (way != LINK_HOPSCOTCH)
		return -EOPNOTSUPP;
	if (!s->array.mem)
		r = hopscotch_build(&t->hopscotch, header(t), s->file.mem);
	if (r < 0)
		return r;
	s->array.mem = t->hopscotch.words;
	s->array.size = hopscotch_bytes(t->hopscotch.places);
	return source_register(&s->array, pd, 0);
}

static void table_free(struct source *s)
{
	struct table *t = (struct table *)s;

	if (s->array.mr)
		ibv_dereg_mr(s->array.mr);
	hopscotch_deinit(&t->hopscotch);
	source_unmap(&s->file);
	reddn_table_close(t->writer);
	free(t);
}

int source_table(struct source **out, const char *path, enum source_access access)
{
	struct table *t = calloc(1, sizeof(*t));
	const struct reddn_table_header *h;
	char err[256];
	int r;

	if (!t)
		return -ENOMEM;
	t->source = (struct source){.get = get, .set = set, .serve = serve, .free = table_free};
	/* checks all that is relied upon here */
	r = reddn_table_open(
		&t->writer, path, access == SOURCE_WRITE ? REDDN_TABLE_WRITE : 0, err, sizeof(err));
	if (r < 0)
		fprintf(stderr, "%s\n", err);
	else
		r = source_map(&t->source.file, path);
	if (r < 0) {
		table_free(&t->source);
		return r;
	}
	h = header(t);
	if (access == SOURCE_SHARED) {
		t->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
		t->free = end_of_records(t);
		t->source.give = give;
	}
	t->source.request_max = (uint32_t)(h->max_key + sizeof(uint64_t) + h->max_value);
	t->source.reply_max = (uint32_t)reddn_record_padded(reddn_record_size(h->max_key, h->max_value));
	*out = &t->source;
	return 0;
}
