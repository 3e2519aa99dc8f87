/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/source.h"

#include "libclient/reddn-table.h"
#include "libclient/reddn.h"
#include "tests/bench/ways/hopscotch.h"
#include "tests/bench/ways/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int list_get(struct source *s, const void *key, uint32_t key_len, struct ibv_sge *answer)
{
	uint64_t asked = list_asked(key, key_len), at = 0;

	do {
		const struct list_node *node = (const void *)((const uint8_t *)s->array.mem + at);
		uint64_t len = list_big(node->len, sizeof(node->len)),
			 off = list_big(node->off, sizeof(node->off));

		if (list_key(node) == asked) {
			if (len > s->reply_max || off + len > s->file.size)
				return -EBADMSG;
			*answer = (struct ibv_sge){
				(uintptr_t)s->file.mem + off, (uint32_t)len, s->file.mr->lkey};
			return 0;
		}
		at = list_big(node->next, sizeof(node->next));
		if (at + sizeof(*node) > s->array.size)
			return -EBADMSG;
	} while (at);
	return REDDN_MISS;
}

static int list_set(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len,
	const uint64_t *sum)
{
	(void)s, (void)key, (void)key_len, (void)value, (void)val_len, (void)sum;
	return -EROFS;
}

static int list_serve(struct source *s, struct ibv_pd *pd, enum link_way way)
{
	int r = source_register(&s->file, pd, 0);

	if (r == 0)
		r = source_register(&s->array, pd, 0);
	return r < 0 || way == LINK_LIST || way == LINK_REQUESTS ? r : -EOPNOTSUPP;
}

static void list_free(struct source *s)
{
	source_unmap(&s->file);
	source_unmap(&s->array);
	free(s);
}

int source_list(struct source **out, const char *nodes, const char *values)
{
	struct source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct source){.request_max = 32,
		.reply_max = LIST_VALUE_MAX,
		.get = list_get,
		.set = list_set,
		.serve = list_serve,
		.free = list_free};
	r = source_map(&s->array, nodes);
	if (r == 0)
		r = source_map(&s->file, values);
	if (r == 0 && s->array.size < sizeof(struct list_node))
		r = -EBADMSG;
	if (r < 0) {
		list_free(s);
		return r;
	}
	*out = s;
	return 0;
}

int source_map(struct source_file *f, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC), r = 0;
	void *mem = MAP_FAILED;

	if (fd >= 0 && fstat(fd, &st) == 0)
		mem = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		r = -errno;
		perror(path);
	} else {
		*f = (struct source_file){.mem = mem, .size = (size_t)st.st_size};
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int source_register(struct source_file *f, struct ibv_pd *pd, int more_access)
{
	if (!f->mr)
		f->mr = ibv_reg_mr(pd, f->mem, f->size, IBV_ACCESS_REMOTE_READ | more_access);
	return f->mr ? 0 : -errno;
}

void source_unmap(struct source_file *f)
{
	if (f->mr)
		ibv_dereg_mr(f->mr);
	if (f->mem)
		munmap(f->mem, f->size);
	*f = (struct source_file){0};
}

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
static int table_get(struct source *s, const void *key, uint32_t key_len, struct ibv_sge *answer)
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

static int table_set(struct source *s, const void *key, uint32_t key_len, const void *value, uint32_t val_len,
	const uint64_t *sum)
{
	struct reddn_table *writer = ((struct table *)s)->writer;
	struct ibv_sge is;

	if (sum) {
		int r = table_get(s, key, key_len, &is);

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

static int table_serve(struct source *s, struct ibv_pd *pd, enum link_way way)
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
	t->source =
		(struct source){.get = table_get, .set = table_set, .serve = table_serve, .free = table_free};
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
