/* SPDX-License-Identifier: BSD-2-Clause */
/* What handles of libreddn-table make and read: stores, with an entry between its buckets, too. */
#include "libclient/reddn-table.h"
#include "reddnd/store/test-rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

/* A store in a memory file, made by the library and open for its writer */
struct made {
	int fd;
	struct rig rig;
	struct store *store;
};

static struct made made_new(const struct reddn_table_options *opt)
{
	struct made m = {.fd = memfd_create("store", MFD_CLOEXEC)};
	struct reddn_table_stat st;
	struct reddn_table *t = NULL;
	char why[200] = "";
	uint8_t *file;

	assert_true(m.fd >= 0);
	if (reddn_table_create_fd(&t, m.fd, opt, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	assert_int_equal(reddn_table_put(t, "k", 1, "v", 1), -EROFS);
	assert_int_equal(reddn_table_delete(t, "k", 1), -EROFS);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	assert_int_equal(reddn_table_open_fd(&t, m.fd, REDDN_TABLE_WRITE, why, sizeof(why)), -EROFS);
	assert_non_null(strstr(why, "it is a store"));
	file = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	m.rig = (struct rig){.size = st.file_size, .buckets = st.buckets, .header = st.header};
	m.rig.h = (struct reddn_table_header *)file;
	m.rig.chunk = m.rig.h->chunk;
	rig_look(&m.rig, &m.rig, file);
	m.store = rig_open(&m.rig);
	return m;
}

static void made_free(struct made *m)
{
	store_close(m->store);
	munmap(m->rig.file, m->rig.size);
	close(m->fd);
}

/* The value of the key in the file as it is now, by a get and by a look at all entries; 0: absent. -errno */
static int64_t look(const struct made *m, uint32_t key)
{
	struct reddn_table *t = NULL;
	struct reddn_table_entry e;
	char why[200] = "";
	uint64_t pos = 0, val = 0;
	const void *found;
	size_t len;
	int r, next;
	unsigned times = 0;

	if (reddn_table_open_fd(&t, m->fd, 0, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	r = reddn_table_get(t, &key, sizeof(key), &found, &len);
	if (r == 0) {
		assert_int_equal(len, 16);
		memcpy(&val, found, sizeof(val));
	}
	while ((next = reddn_table_next(t, &pos, &e)) != REDDN_TABLE_END) {
		assert_int_equal(next, 0);
		if (e.key_len == sizeof(key) && !memcmp(e.key, &key, sizeof(key))) {
			assert_memory_equal(e.val, &val, sizeof(val));
			times++;
		}
	}
	assert_int_equal(times, r == 0);
	reddn_table_close(t);
	return r < 0 ? r : (int64_t)val;
}

static void expire(const struct made *m, uint32_t key, uint64_t ms)
{
	const uint64_t at = reddn_locator_off(m->rig.words[2 * rig_bucket(&m->rig, key)]);
	const uint64_t be = htobe64(ms);

	memcpy(m->rig.heap + at + m->rig.header - REDDN_STORE_EXPIRY,
		(const uint8_t *)&be + sizeof(be) - REDDN_STORE_EXPIRY, REDDN_STORE_EXPIRY);
}

static void test_read(void **state)
{
	struct made m = made_new(&(struct reddn_table_options){.store = 1,
		.buckets = 4096,
		.max_key = 16,
		.max_value = 64,
		.heap_size = 1 << 20,
		.seed = 5});
	struct reddn_table_stat st;
	struct reddn_table *t;

	assert_int_equal(m.rig.header, 15);
	assert_int_equal(look(&m, 7), 0);
	for (uint32_t key = 1; key < 500; key++)
		assert_int_equal(rig_put(m.store, &m.rig, key, key), 0);
	for (uint32_t key = 1; key < 500; key += 50)
		rig_delete(m.store, &m.rig, key);
	for (uint32_t key = 1; key < 500; key += 7)
		assert_int_equal(look(&m, key), key % 50 == 1 ? 0 : key);
	assert_int_equal(reddn_table_open_fd(&t, m.fd, 0, NULL, 0), 0);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	assert_int_equal(st.entries, 489);
	assert_int_equal(st.idle, 10);
	assert_int_equal(st.heap_used, 499 * 128);
	/* What has expired is absent */
	expire(&m, 5, 1);
	assert_int_equal(look(&m, 5), 0);
	expire(&m, 5, UINT64_MAX >> 8);
	assert_int_equal(look(&m, 5), 5);
	/* Of a length that no client may publish: as if it was not there */
	rig_publish(m.store, &m.rig, 64, 2, 17);
	assert_int_equal(look(&m, 2), 0);
	/* So is that of what is no mark */
	m.rig.words[2 * rig_bucket(&m.rig, 4) + 1] = reddn_locator(4096, 128);
	assert_int_equal(look(&m, 4), 0);
	assert_int_equal(look(&m, 5), 5);
	m.rig.words[2 * rig_bucket(&m.rig, 3)] = reddn_locator(72, 128);
	assert_int_equal(reddn_table_open_fd(&t, m.fd, 0, NULL, 0), -EBADMSG);
	made_free(&m);
}

/* Three bytes of an offset, and records that are no words of memory */
static void test_larger(void **state)
{
	struct made m = made_new(&(struct reddn_table_options){.store = 1, .buckets = 8192});

	assert_int_equal(m.rig.header, 16);
	assert_int_equal(m.rig.h->max_key, 256);
	assert_int_equal(m.rig.h->max_value, 1024);
	assert_int_equal(rig_put(m.store, &m.rig, 9, 99), 0);
	assert_int_equal(look(&m, 9), 99);
	made_free(&m);
}

/* The daemon dies with moves under way: nothing that is in the journal is lost to readers, */
static void test_moving(void **state)
{
	struct made m = made_new(&(struct reddn_table_options){
		.store = 1, .buckets = 64, .max_key = 16, .max_value = 64, .heap_size = 1 << 20, .seed = 5});
	uint32_t keys = 0, moving = 0;
	uint64_t at;

	/* until the next key needs a move */
	for (; !m.rig.h->live.moves; keys++)
		assert_int_equal(rig_put(m.store, &m.rig, keys, keys + 1), 0);
	assert_int_equal(store_take(m.store, RIG_MESSAGE, &at), 0);
	for (; m.rig.h->live.moves % 2 == 0; keys++) {
		uint32_t bytes = rig_record(&m.rig, m.rig.heap + at + m.rig.header, keys, 1, 16);

		assert_true(keys < 64);
		assert_true(store_unplaced(m.store, at, bytes));
		store_work(m.store);
		if (m.rig.h->live.moves % 2 == 0 && rig_bucket(&m.rig, keys) >= 0)
			assert_int_equal(rig_put(m.store, &m.rig, keys, keys + 1), 0);
	}
	for (uint32_t key = 0; key < keys - 1; key++) {
		moving += rig_bucket(&m.rig, key) < 0;
		assert_int_equal(look(&m, key), key + 1);
	}
	assert_true(moving > 0);
	/* but what is absent is not certain. */
	assert_int_equal(look(&m, 1000), -EAGAIN);
	made_free(&m);
}

/* A store with the entries of a table, in place of which clients put others */
static void test_from(void **state)
{
	int fd = memfd_create("table", MFD_CLOEXEC);
	struct reddn_table *table = NULL;
	struct reddn_table_options opt = {
		.capacity = 4000, .max_key = 16, .max_value = 64, .heap_size = 4 << 20};
	struct made m;

	assert_int_equal(reddn_table_create_fd(&table, fd, &opt, NULL, 0), 0);
	for (uint32_t key = 0; key < 4000; key++) {
		const uint64_t val[2] = {key + 1, key + 1};

		assert_int_equal(reddn_table_put(table, &key, sizeof(key), val, sizeof(val)), 0);
	}
	m = made_new(&(struct reddn_table_options){.store = 1, .from = table});
	reddn_table_close(table);
	close(fd);
	for (uint32_t key = 0; key < 4000; key += 61)
		assert_int_equal(look(&m, key), key + 1);
	for (uint32_t key = 0; key < 4000; key++)
		assert_int_equal(rig_put(m.store, &m.rig, key, key + 2), 0);
	for (uint32_t key = 4000; key < 4100; key++)
		assert_int_equal(rig_put(m.store, &m.rig, key, key + 2), 0);
	for (uint32_t key = 0; key < 4100; key += 61)
		assert_int_equal(look(&m, key), key + 2);
	made_free(&m);
}

static void test_options(void **state)
{
	static const struct reddn_table_options wrong[] = {{.store = 1, .grow = 1},
		{.store = 1, .max_value = 1 << 23, .capacity = 1 << 20}, {.store = 1, .buckets = 1000},
		{.evict = 1}};
	struct reddn_table *t;
	char why[200] = "";
	int fd = memfd_create("store", MFD_CLOEXEC);

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(reddn_table_create_fd(&t, fd, &wrong[i], why, sizeof(why)), -EINVAL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_larger),
		cmocka_unit_test(test_moving),
		cmocka_unit_test(test_from),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
