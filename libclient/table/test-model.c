/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/table/test-model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/cmocka.h"

char table_why[256];

int table_file(void)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct reddn_table *table_create(int fd, const struct reddn_table_options *opt)
{
	struct reddn_table *t = NULL;
	int r = reddn_table_create_fd(&t, fd, opt, table_why, sizeof(table_why));

	if (r < 0)
		fail_msg("create: %d %s", r, table_why);
	return t;
}

struct reddn_table *table_reopen(int fd, int flags)
{
	struct reddn_table *t = NULL;
	int r = reddn_table_open_fd(&t, fd, flags, table_why, sizeof(table_why));

	if (r < 0)
		fail_msg("open: %d %s", r, table_why);
	return t;
}

struct model_pair *model_find(struct model *m, const void *key, size_t len)
{
	struct model_pair *p;

	HASH_FIND(hh, m->map, key, len, p);
	return p;
}

void model_delete(struct model *m, struct model_pair *p)
{
	HASH_DEL(m->map, p);
	free(p->val);
	free(p);
}

void model_put(struct model *m, const void *key, size_t key_len, const void *val, size_t val_len)
{
	struct model_pair *p = model_find(m, key, key_len);

	if (p)
		model_delete(m, p);
	p = calloc(1, sizeof(*p) + key_len);
	p->key_len = key_len;
	p->val_len = val_len;
	memcpy(p->key, key, key_len);
	p->val = malloc(val_len + 1);
	memcpy(p->val, val, val_len);
	HASH_ADD_KEYPTR(hh, m->map, p->key, key_len, p);
}

void model_free(struct model *m)
{
	struct model_pair *p, *tmp;

	HASH_ITER (hh, m->map, p, tmp)
		model_delete(m, p);
}

/* Every pair is found, the iteration yields exactly the pairs, and the count agrees. */
void model_check(struct reddn_table *t, struct model *m)
{
	struct reddn_table_stat st;
	struct reddn_table_entry e;
	struct model_pair *p, *tmp;
	uint64_t pos = 0, n = 0;

	HASH_ITER (hh, m->map, p, tmp) {
		const void *val;
		size_t len;

		assert_int_equal(reddn_table_get(t, p->key, p->key_len, &val, &len), 0);
		assert_int_equal(len, p->val_len);
		assert_memory_equal(val, p->val, len);
	}
	while (reddn_table_next(t, &pos, &e) == 0) {
		p = model_find(m, e.key, e.key_len);
		assert_non_null(p);
		assert_int_equal(e.val_len, p->val_len);
		assert_memory_equal(e.val, p->val, e.val_len);
		n++;
	}
	assert_int_equal(pos, 1ull << (63 - __builtin_clzll(pos)));
	assert_int_equal(n, HASH_COUNT(m->map));
	reddn_table_stat(t, &st);
	assert_int_equal(st.entries, n);
	assert_int_equal(pos, st.buckets);
}
