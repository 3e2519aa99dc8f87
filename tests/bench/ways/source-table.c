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

static int set(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len)
{
	return reddn_table_put(((struct table *)s)->writer, key, key_len, value, val_len);
}

static int serve(struct source *s, struct ibv_pd *pd, enum link_way way)
{
	struct table *t = (struct table *)s;
	int r = source_register(&s->file, pd);

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
	return source_register(&s->array, pd);
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

int source_table(struct source **out, const char *path, bool write)
{
	struct table *t = calloc(1, sizeof(*t));
	const struct reddn_table_header *h;
	char err[256];
	int r;

	if (!t)
		return -ENOMEM;
	t->source = (struct source){.get = get, .set = set, .serve = serve, .free = table_free};
	/* checks all that is relied upon here */
	r = reddn_table_open(&t->writer, path, write ? REDDN_TABLE_WRITE : 0, err, sizeof(err));
	if (r < 0)
		fprintf(stderr, "%s\n", err);
	else
		r = source_map(&t->source.file, path);
	if (r < 0) {
		table_free(&t->source);
		return r;
	}
	h = header(t);
	t->source.request_max = h->max_key + h->max_value;
	t->source.reply_max = (uint32_t)reddn_record_padded(reddn_record_size(h->max_key, h->max_value));
	*out = &t->source;
	return 0;
}
