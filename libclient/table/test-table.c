/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reddn-table.h"
#include "protocol/table-hash.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <uthash.h>

static char why[256];

static int memfile(void)
{
	int fd = memfd_create("table", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct reddn_table *create(int fd, const struct reddn_table_options *opt)
{
	struct reddn_table *t = NULL;
	int r = reddn_table_create_fd(&t, fd, opt, why, sizeof(why));

	if (r < 0)
		fail_msg("create: %d %s", r, why);
	return t;
}

static struct reddn_table *reopen(int fd, int flags)
{
	struct reddn_table *t = NULL;
	int r = reddn_table_open_fd(&t, fd, flags, why, sizeof(why));

	if (r < 0)
		fail_msg("open: %d %s", r, why);
	return t;
}

/* The plain map that the table must equal. */
struct pair {
	UT_hash_handle hh;
	size_t key_len, val_len;
	uint8_t *val;
	uint8_t key[];
};

struct model {
	struct pair *map;
};

static struct pair *model_find(struct model *m, const void *key, size_t len)
{
	struct pair *p;

	HASH_FIND(hh, m->map, key, len, p);
	return p;
}

static void model_delete(struct model *m, struct pair *p)
{
	HASH_DEL(m->map, p);
	free(p->val);
	free(p);
}

static void model_put(struct model *m, const void *key, size_t key_len, const void *val, size_t val_len)
{
	struct pair *p = model_find(m, key, key_len);

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

static void model_free(struct model *m)
{
	struct pair *p, *tmp;

	HASH_ITER (hh, m->map, p, tmp)
		model_delete(m, p);
}

/* Every pair is found, the iteration yields exactly the pairs, and the count agrees. */
static void check_equal(struct reddn_table *t, struct model *m)
{
	struct reddn_table_stat st;
	struct reddn_table_entry e;
	struct pair *p, *tmp;
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

static void fill(uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)random();
}

static void property(unsigned seed, struct reddn_table_options opt, unsigned keys, unsigned steps)
{
	int fd = memfile();
	struct reddn_table *t = create(fd, &opt), *reader = reopen(fd, 0);
	uint8_t *val = malloc(opt.max_value + 1), key[300];
	struct model m = {0};
	unsigned full = 0;

	srandom(seed);
	for (unsigned i = 0; i < steps; i++) {
		unsigned id = (unsigned)random() % keys, what = (unsigned)random() % 100;
		size_t key_len = 1 + id % 290, val_len, got_len;
		const void *got;
		struct pair *p;

		memset(key, (int)(id % 251), sizeof(key));
		memcpy(key, &id, key_len < 4 ? key_len : 4);
		p = model_find(&m, key, key_len);
		if (what < 55) {
			int r;

			val_len = (size_t)random() %
				  (random() % 20 && opt.max_value > 100 ? 100 : opt.max_value + 1);
			fill(val, val_len);
			r = reddn_table_put(t, key, key_len, val, val_len);
			if (r == 0) {
				model_put(&m, key, key_len, val, val_len);
			} else {
				assert_int_equal(r, -ENOSPC);
				if (full++ % 256 == 0)
					check_equal(t, &m);
			}
		} else if (what < 75) {
			assert_int_equal(reddn_table_delete(t, key, key_len), p ? 0 : REDDN_TABLE_MISS);
			if (p)
				model_delete(&m, p);
		} else {
			int r = reddn_table_get(what % 2 ? t : reader, key, key_len, &got, &got_len);

			assert_int_equal(r, p ? 0 : REDDN_TABLE_MISS);
			if (p) {
				assert_int_equal(got_len, p->val_len);
				assert_memory_equal(got, p->val, got_len);
			}
		}
		if (i % (steps / 8) == 0) {
			check_equal(reader, &m);
			reddn_table_close(t);
			t = reopen(fd, REDDN_TABLE_WRITE);
			check_equal(t, &m);
		}
	}
	check_equal(t, &m);
	reddn_table_close(reader);
	reddn_table_close(t);
	model_free(&m);
	free(val);
	close(fd);
}

static void test_property(void **state)
{
	(void)state;
	/* Room enough; buckets scarce; heap scarce; as small as it gets. */
	property(1,
		(struct reddn_table_options){.capacity = 3000, .max_key = 290, .max_value = 5000, .seed = 5},
		2000, 100000);
	property(2,
		(struct reddn_table_options){.buckets = 1024, .max_key = 290, .max_value = 500, .seed = 6},
		700, 100000);
	property(3,
		(struct reddn_table_options){
			.buckets = 4096, .heap_size = 100000, .max_key = 290, .max_value = 9000, .seed = 7},
		1000, 100000);
	property(4, (struct reddn_table_options){.buckets = 2, .max_key = 290, .max_value = 1, .seed = 8}, 5,
		2000);
}

/* 48 % of the buckets can be filled, which needs many moves; after the first refusal nothing is missing. */
static void test_load(void **state)
{
	enum { BUCKETS = 1 << 17 };
	int fd = memfile();
	struct reddn_table *t =
		create(fd, &(struct reddn_table_options){
				   .buckets = BUCKETS, .heap_size = BUCKETS * 64, .max_key = 8, .seed = 11});
	struct reddn_table_stat st;
	uint64_t n = 0, len;
	const void *val;

	(void)state;
	while (reddn_table_put(t, &n, 8, &n, 8) == 0)
		n++;
	assert_int_equal(reddn_table_put(t, &n, 8, &n, 8), -ENOSPC);
	reddn_table_stat(t, &st);
	print_message(
		"full at %.2f%%, %lu moves\n", 100.0 * (double)n / BUCKETS, (unsigned long)st.moves / 2);
	assert_true(n > BUCKETS * 48 / 100);
	assert_true(st.moves > 1000);
	assert_int_equal(st.moves % 2, 0);
	assert_int_equal(st.entries, n);
	for (uint64_t k = 0; k < n; k++) {
		assert_int_equal(reddn_table_get(t, &k, 8, &val, &len), 0);
		assert_memory_equal(val, &k, 8);
	}
	assert_int_equal(reddn_table_get(t, &n, 8, &val, &len), REDDN_TABLE_MISS);
	reddn_table_close(t);
	close(fd);
}

static void test_limits(void **state)
{
	int fd = memfile();
	struct reddn_table *t = create(fd, &(struct reddn_table_options){.capacity = 10, .seed = 1}), *r;
	uint8_t *big = malloc(65537);
	const void *val;
	size_t len;

	(void)state;
	fill(big, 65537);
	assert_int_equal(reddn_table_put(t, big, 0, "", 0), -EINVAL);
	assert_int_equal(reddn_table_put(t, big, 65537, "", 0), -EMSGSIZE);
	assert_int_equal(reddn_table_put(t, big, 1, big, 65537), -EMSGSIZE);
	assert_int_equal(reddn_table_put(t, big, 65536, big, 65536), 0);
	assert_int_equal(reddn_table_put(t, big, 1, NULL, 0), 0);
	r = reopen(fd, 0);
	assert_int_equal(reddn_table_get(r, big, 65536, &val, &len), 0);
	assert_int_equal(len, 65536);
	assert_memory_equal(val, big, len);
	assert_int_equal(reddn_table_get(r, big, 1, &val, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(reddn_table_get(r, big, 65537, &val, &len), -EMSGSIZE);
	assert_int_equal(reddn_table_put(r, big, 1, big, 1), -EROFS);
	assert_int_equal(reddn_table_delete(r, big, 1), -EROFS);
	reddn_table_close(r);
	reddn_table_close(t);
	free(big);
	close(fd);
}

/* Parts of 2 MiB and more begin at multiples of 2 MiB, others with a page; what lies between takes no space.
 */
static void test_alignment(void **state)
{
	enum { HUGE = 2 << 20 };
	static const struct {
		uint64_t buckets, heap, buckets_off, heap_off;
	} t[] = {
		{64, 1 << 20, 4096, 8192},
		{64, HUGE - 1, 4096, 8192},
		{64, HUGE, 4096, HUGE},
		{HUGE / 32, HUGE, 4096, HUGE},
		{HUGE / 16, 1 << 20, HUGE, 2 * HUGE},
		{HUGE / 16, HUGE, HUGE, 2 * HUGE},
		{HUGE / 8, 3 * HUGE, HUGE, 3 * HUGE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct reddn_table_options opt = {.buckets = t[i].buckets, .heap_size = t[i].heap};
		struct reddn_table_stat st;
		struct reddn_table *table;
		int fd = memfd_create("aligned", MFD_CLOEXEC);
		struct stat s;
		char err[200];

		assert_int_equal(reddn_table_create_fd(&table, fd, &opt, err, sizeof(err)), 0);
		reddn_table_stat(table, &st);
		assert_int_equal(st.buckets_off, t[i].buckets_off);
		assert_int_equal(st.heap_off, t[i].heap_off);
		assert_true(st.heap_size >= t[i].heap);
		assert_int_equal(fstat(fd, &s), 0);
		assert_true((uint64_t)s.st_blocks * 512 <= st.heap_size + t[i].buckets * 16 + 3 * 4096);
		reddn_table_close(table);
		assert_int_equal(reddn_table_open_fd(&table, fd, 0, err, sizeof(err)), 0);
		reddn_table_close(table);
		close(fd);
	}
}

/* What was asked for as capacity fits, whatever the seed: it did not for 100 entries in 256 buckets. */
static void test_capacity(void **state)
{
	static const uint64_t capacities[] = {1, 10, 100, 460, 1000, 1360};
	char key[24];

	(void)state;
	for (size_t c = 0; c < COUNT(capacities); c++)
		for (uint64_t seed = 1; seed <= 40; seed++) {
			int fd = memfd_create("table", MFD_CLOEXEC);
			struct reddn_table *t = create(
				fd, &(struct reddn_table_options){.capacity = capacities[c], .seed = seed});

			for (uint64_t i = 0; i < capacities[c]; i++) {
				int len = snprintf(key, sizeof(key), "key %" PRIu64, i);

				assert_int_equal(reddn_table_put(t, key, (size_t)len, "v", 1), 0);
			}
			reddn_table_close(t);
			close(fd);
		}
}

/* A file that is neither a table nor empty stays as it is. */
static void expect_replaced(const char *file)
{
	static const char data[] = "key\tvalue\n";
	struct reddn_table_options opt = {.capacity = 100, .replace = 1};
	struct reddn_table *t;
	char kept[sizeof(data)];
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, sizeof(data)), sizeof(data));
	assert_int_equal(reddn_table_create(&t, file, &opt, why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, "not a reddn table"));
	assert_int_equal(pread(fd, kept, sizeof(kept), 0), sizeof(data));
	assert_memory_equal(kept, data, sizeof(data));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(reddn_table_create(&t, file, &opt, why, sizeof(why)), 0);
	reddn_table_close(t);
	/* damaged: it has the magic, and no more */
	assert_int_equal(truncate(file, 100), 0);
	assert_int_equal(reddn_table_open(&t, file, 0, why, sizeof(why)), -EBADMSG);
	assert_int_equal(reddn_table_create(&t, file, &opt, why, sizeof(why)), 0);
	reddn_table_close(t);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(reddn_table_create(&t, file, &opt, why, sizeof(why)), -EEXIST);
	assert_int_equal(unlink(file), 0);
}

static void test_files(void **state)
{
	char path[] = "/dev/shm/test-table-XXXXXX", file[64];
	struct reddn_table_options opt = {.capacity = 100};
	struct reddn_table *a, *b = NULL;
	struct reddn_table_stat sa, sb;

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/t", path);
	assert_int_equal(reddn_table_open(&a, file, 0, why, sizeof(why)), -ENOENT);
	assert_int_equal(reddn_table_create(&a, file, &opt, why, sizeof(why)), 0);
	assert_int_equal(reddn_table_create(&b, file, &opt, why, sizeof(why)), -EEXIST);
	assert_int_equal(reddn_table_open(&b, file, REDDN_TABLE_WRITE, why, sizeof(why)), -EBUSY);
	assert_non_null(strstr(why, file));
	assert_int_equal(reddn_table_open(&b, file, 0, why, sizeof(why)), 0);
	reddn_table_close(b);
	/* The replaced table lives on for those who have it. */
	opt.replace = 1;
	assert_int_equal(reddn_table_create(&b, file, &opt, why, sizeof(why)), 0);
	assert_int_equal(reddn_table_put(a, "k", 1, "v", 1), 0);
	reddn_table_stat(a, &sa);
	reddn_table_stat(b, &sb);
	assert_int_equal(sa.entries, 1);
	assert_int_equal(sb.entries, 0);
	assert_int_not_equal(sa.epoch, sb.epoch);
	reddn_table_close(a);
	reddn_table_close(b);
	assert_int_equal(reddn_table_open(&a, file, REDDN_TABLE_WRITE, why, sizeof(why)), 0);
	reddn_table_close(a);
	assert_int_equal(unlink(file), 0);
	opt = (struct reddn_table_options){.buckets = 3, .replace = 1};
	assert_int_equal(reddn_table_create(&a, file, &opt, why, sizeof(why)), -EINVAL);
	expect_replaced(file);
	/* Nothing was left behind. */
	assert_int_equal(rmdir(path), 0);
}

/* Two keys that readers cannot tell apart. XXH3 yields no such pair, so the first one is made by hand in its
 * record. */
static void test_not_unique(void **state)
{
	int fd = memfile();
	struct reddn_table *t = create(
		fd, &(struct reddn_table_options){.buckets = 4, .max_key = 8, .max_value = 8, .seed = 3});
	struct reddn_table_stat st;
	struct reddn_record *r;
	uint8_t *map;
	const void *val;
	size_t len;

	(void)state;
	assert_int_equal(reddn_table_put(t, "aaa", 3, "1", 1), 0);
	reddn_table_stat(t, &st);
	map = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = (struct reddn_record *)(map + st.heap_off + 64);
	assert_memory_equal(r->bytes, "aaa1", 4);
	r->bytes[0] = 'b';
	r->sum = reddn_record_sum(r);
	assert_int_equal(reddn_table_put(t, "aaa", 3, "2", 1), -ENOTUNIQ);
	assert_int_equal(reddn_table_delete(t, "aaa", 3), REDDN_TABLE_MISS);
	/* A reader sees a record whose key does not belong there. */
	assert_int_equal(reddn_table_get(t, "aaa", 3, &val, &len), -EBADMSG);
	munmap(map, st.file_size);
	reddn_table_close(t);
	close(fd);
}

/* A writer that dies between any two stores of a move. */
static void test_half_moves(void **state)
{
	(void)state;
	for (int steps = 0; steps <= 5; steps++) {
		int fd = memfile();
		struct reddn_table *t = create(fd, &(struct reddn_table_options){.buckets = 64, .seed = 9});
		struct reddn_table_stat st;
		struct model m = {0};
		struct reddn_place p;
		uint64_t *words, *live, *journal, null_word, from, to;
		uint8_t *map;

		for (uint32_t k = 0; k < 12; k++) {
			assert_int_equal(reddn_table_put(t, &k, 4, &k, 4), 0);
			model_put(&m, &k, 4, &k, 4);
		}
		reddn_table_stat(t, &st);
		map = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		words = (uint64_t *)(map + st.buckets_off);
		live = (uint64_t *)(map + st.live_off);
		journal = (uint64_t *)(map + st.live_off + 64);
		null_word = reddn_locator(0, 16);
		/* One that can move: an entry with an empty other bucket. */
		for (uint32_t k = 0;; k++) {
			assert_true(k < 12);
			p = reddn_hash_key(st.hash_seed, st.buckets, &k, 4);
			from = words[2 * p.bucket[0] + 1] == reddn_mark(p.fp) ? p.bucket[0] : p.bucket[1];
			to = from == p.bucket[0] ? p.bucket[1] : p.bucket[0];
			if (!words[2 * to + 1])
				break;
		}
		journal[0] = from;
		journal[1] = to;
		live[0]++;
		if (steps > 0)
			words[2 * to] = words[2 * from];
		if (steps > 1)
			words[2 * to + 1] = words[2 * from + 1];
		if (steps > 2)
			words[2 * from + 1] = 0;
		if (steps > 3)
			words[2 * from] = null_word;
		if (steps > 4)
			live[0]++;
		reddn_table_close(t);
		t = reopen(fd, 0);
		if (steps <= 4) {
			const void *val;
			size_t len;

			/* Present is still certain, absent is not. */
			assert_int_equal(reddn_table_get(t, "none", 4, &val, &len), -EAGAIN);
			reddn_table_close(t);
		} else {
			check_equal(t, &m);
			reddn_table_close(t);
		}
		t = reopen(fd, REDDN_TABLE_WRITE);
		check_equal(t, &m);
		reddn_table_stat(t, &st);
		assert_int_equal(st.moves % 2, 0);
		reddn_table_close(t);
		munmap(map, st.file_size);
		model_free(&m);
		close(fd);
	}
}

/* A half-made insert and a half-made delete. */
static void test_half_entries(void **state)
{
	int fd = memfile();
	struct reddn_table *t = create(fd, &(struct reddn_table_options){.buckets = 4, .seed = 9});
	struct reddn_table_stat st;
	struct reddn_place p;
	uint64_t *words, b;
	uint8_t *map;

	(void)state;
	assert_int_equal(reddn_table_put(t, "x", 1, "y", 1), 0);
	reddn_table_stat(t, &st);
	map = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	words = (uint64_t *)(map + st.buckets_off);
	p = reddn_hash_key(st.hash_seed, st.buckets, "x", 1);
	b = words[2 * p.bucket[0] + 1] ? p.bucket[0] : p.bucket[1];
	words[2 * b + 1] = 0;
	reddn_table_close(t);
	t = reopen(fd, REDDN_TABLE_WRITE);
	assert_int_equal(words[2 * b], reddn_locator(0, 16));
	reddn_table_stat(t, &st);
	assert_int_equal(st.entries, 0);
	assert_int_equal(st.heap_used, 64);
	reddn_table_close(t);
	munmap(map, st.file_size);
	close(fd);
}

/*
 * Writers killed at random moments. Shared memory has the current operation of the child; after its death
 * the table must equal the model with or without that operation.
 */
struct crash {
	volatile uint64_t done; /* operations completed */
};

static void crash_op(uint64_t n, uint32_t *key, uint8_t *val, size_t *val_len, bool *del)
{
	uint64_t x = (n + 1) * 0x9e3779b97f4a7c15ull;

	*key = (uint32_t)((x >> 20) % 480);
	*del = (x >> 40) % 4 == 0;
	*val_len = 8 + (x >> 50) % 200;
	memset(val, (int)n, *val_len);
	memcpy(val, &n, 8);
}

static void crash_apply(struct model *m, uint64_t n)
{
	uint8_t val[256];
	uint32_t key;
	size_t len;
	bool del;

	crash_op(n, &key, val, &len, &del);
	if (!del) {
		model_put(m, &key, 4, val, len);
	} else {
		struct pair *p = model_find(m, &key, 4);

		if (p)
			model_delete(m, p);
	}
}

static bool same_as_model(struct reddn_table *t, struct model *m, uint32_t key)
{
	struct pair *p = model_find(m, &key, 4);
	const void *val;
	size_t len;
	int r = reddn_table_get(t, &key, 4, &val, &len);

	return p ? r == 0 && len == p->val_len && !memcmp(val, p->val, len) : r == REDDN_TABLE_MISS;
}

static void test_kill(void **state)
{
	struct crash *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = memfile();
	struct model m = {0};
	uint64_t applied = 0, key_mismatch;

	(void)state;
	srandom(3);
	reddn_table_close(create(fd,
		&(struct reddn_table_options){.buckets = 1024, .max_key = 4, .max_value = 300, .seed = 21}));
	for (int round = 0; round < 150; round++) {
		struct timespec nap = {.tv_nsec = 50000 + random() % 900000};
		struct reddn_table *t;
		uint32_t key;
		uint8_t val[256];
		size_t len;
		bool del;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			if (reddn_table_open_fd(&t, fd, REDDN_TABLE_WRITE, NULL, 0) < 0)
				_exit(1);
			for (;;) {
				crash_op(shared->done, &key, val, &len, &del);
				if ((del ? reddn_table_delete(t, &key, 4)
					 : reddn_table_put(t, &key, 4, val, len)) < 0)
					_exit(2);
				shared->done++;
			}
		}
		nanosleep(&nap, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &(int){0}, 0), pid);
		t = reopen(fd, REDDN_TABLE_WRITE);
		while (applied < shared->done)
			crash_apply(&m, applied++);
		crash_op(applied, &key, val, &len, &del);
		/* Either the operation under way has happened or not; all others have. */
		if (!same_as_model(t, &m, key))
			crash_apply(&m, applied++);
		shared->done = applied;
		check_equal(t, &m);
		key_mismatch = 0;
		for (key = 0; key < 480; key++)
			key_mismatch += !same_as_model(t, &m, key);
		assert_int_equal(key_mismatch, 0);
		reddn_table_close(t);
	}
	print_message("%lu operations, %d kills\n", (unsigned long)applied, 150);
	assert_true(applied > 1000);
	model_free(&m);
	munmap(shared, 4096);
	close(fd);
}

/* Any byte may be wrong: the table is refused, or what it returns is what was put. Never a crash. */
static void try_damaged(int fd, struct model *m, int flags, unsigned *refused)
{
	struct reddn_table *t;
	struct reddn_table_entry e;
	struct pair *p, *tmp;
	uint64_t pos = 0;
	int r = reddn_table_open_fd(&t, fd, flags, why, sizeof(why));

	if (r < 0) {
		assert_true(r == -EBADMSG || r == -ENOMEM);
		assert_true(strlen(why) > 8);
		(*refused)++;
		return;
	}
	HASH_ITER (hh, m->map, p, tmp) {
		const void *val;
		size_t len;

		if (reddn_table_get(t, p->key, p->key_len, &val, &len) == 0 && len == p->val_len)
			assert_memory_equal(val, p->val, len);
		break;
	}
	while ((r = reddn_table_next(t, &pos, &e)) != REDDN_TABLE_END) {
		if (r < 0)
			continue;
		p = model_find(m, e.key, e.key_len);
		assert_non_null(p);
		assert_int_equal(e.val_len, p->val_len);
		assert_memory_equal(e.val, p->val, e.val_len);
	}
	if (flags & REDDN_TABLE_WRITE) {
		for (uint32_t k = 0; k < 20; k++)
			reddn_table_put(t, &k, 4, "new", 3);
		for (uint32_t k = 0; k < 20; k++)
			reddn_table_delete(t, &k, 4);
	}
	reddn_table_close(t);
}

static void test_damage(void **state)
{
	int fd = memfile(), copy = memfile();
	struct reddn_table *t = create(
		fd, &(struct reddn_table_options){
			    .buckets = 32, .heap_size = 8000, .max_key = 8, .max_value = 400, .seed = 4});
	struct reddn_table_stat st;
	struct model m = {0};
	unsigned refused = 0, tried = 0;
	uint8_t *good, *bad;

	(void)state;
	for (uint32_t k = 0; k < 12; k++) {
		assert_int_equal(reddn_table_put(t, &k, 4, "0123456789012345678901234567890", 31), 0);
		model_put(&m, &k, 4, "0123456789012345678901234567890", 31);
	}
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	good = mmap(NULL, st.file_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_int_equal(ftruncate(copy, (off_t)st.file_size), 0);
	bad = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	srandom(12);
	for (uint64_t at = 0; at < st.heap_off + 64 * 14; at++) {
		static const uint8_t flips[] = {0x01, 0x80, 0xff};

		/* The header's first half kilobyte, the buckets and the records. */
		if ((at >= 512 && at < st.buckets_off) ||
			(at >= st.buckets_off + 32 * 16 && at < st.heap_off))
			continue;
		for (unsigned f = 0; f < 3; f++) {
			memcpy(bad, good, st.file_size);
			bad[at] ^= flips[f];
			try_damaged(copy, &m, 0, &refused);
			try_damaged(copy, &m, REDDN_TABLE_WRITE, &refused);
			tried += 2;
		}
	}
	for (int i = 0; i < 3000; i++) {
		memcpy(bad, good, st.file_size);
		for (int k = 0; k < 4; k++)
			bad[random() % 2 ? random() % 208 : (long)st.buckets_off + random() % 512] =
				(uint8_t)random();
		try_damaged(copy, &m, i % 2, &refused);
		tried++;
	}
	print_message("%u damaged tables, %u refused\n", tried, refused);
	assert_true(refused > tried / 10);
	/* Cut short at any page, and not even a page. */
	memcpy(bad, good, st.file_size);
	for (off_t size = (off_t)st.file_size - 4096; size >= 0; size -= 4096) {
		assert_int_equal(ftruncate(copy, size), 0);
		assert_int_equal(reddn_table_open_fd(&t, copy, 0, why, sizeof(why)), -EBADMSG);
	}
	munmap(good, st.file_size);
	munmap(bad, st.file_size);
	model_free(&m);
	close(fd);
	close(copy);
}

/* A reader in another process while a writer moves, replaces and deletes: no wrong value, no missing key. */
static void test_concurrent(void **state)
{
	enum { STABLE = 200, KEYS = 480 };
	volatile uint64_t *stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = memfile(), status;
	struct reddn_table *t = create(fd,
		&(struct reddn_table_options){
			.buckets = 1024, .heap_size = 1024 * 128, .max_key = 4, .max_value = 64, .seed = 33});
	struct reddn_table_stat st;
	uint32_t val[8];
	pid_t pid;

	(void)state;
	for (uint32_t k = 0; k < STABLE; k++) {
		for (int i = 0; i < 8; i++)
			val[i] = k;
		assert_int_equal(reddn_table_put(t, &k, 4, val, sizeof(val)), 0);
	}
	pid = fork();
	if (pid == 0) {
		struct reddn_table *r;

		if (reddn_table_open_fd(&r, fd, 0, NULL, 0) < 0)
			_exit(1);
		for (uint64_t n = 0; !*stop || n < 100000; n++) {
			uint32_t k = (uint32_t)n % KEYS;
			const uint32_t *got;
			size_t len;
			int res = reddn_table_get(r, &k, 4, (const void **)&got, &len);

			if (res == 0) {
				if (len != sizeof(val) || got[0] % KEYS != k)
					_exit(2);
				for (int i = 1; i < 8; i++)
					if (got[i] != got[0])
						_exit(3);
			} else if (res != -EAGAIN && (k < STABLE || res < 0)) {
				_exit(4);
			} else if (res == -EAGAIN && k < STABLE) {
				_exit(5);
			}
		}
		_exit(0);
	}
	srandom(9);
	for (uint32_t n = 0; n < 400000; n++) {
		uint32_t k = (uint32_t)random() % KEYS;

		for (int i = 0; i < 8; i++)
			val[i] = k + KEYS * (n % 1000);
		if (k >= STABLE && n % 2)
			assert_true(reddn_table_delete(t, &k, 4) >= 0);
		else
			assert_int_equal(reddn_table_put(t, &k, 4, val, sizeof(val)), 0);
	}
	*stop = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	reddn_table_stat(t, &st);
	assert_true(st.moves > 100);
	reddn_table_close(t);
	munmap((void *)stop, 4096);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_not_unique),
		cmocka_unit_test(test_half_moves),
		cmocka_unit_test(test_half_entries),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_concurrent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
