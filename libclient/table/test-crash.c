/* SPDX-License-Identifier: BSD-2-Clause */
/* What a writer leaves that dies, and what a file has that is damaged. */
#include "libclient/table/test-model.h"
#include "protocol/table-hash.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

/* A writer that dies between any two stores of a move. */
static void test_half_moves(void **state)
{
	for (int steps = 0; steps <= 5; steps++) {
		int fd = table_file();
		struct reddn_table *t =
			table_create(fd, &(struct reddn_table_options){.buckets = 64, .seed = 9});
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
		t = table_reopen(fd, 0);
		if (steps <= 4) {
			const void *val;
			size_t len;

			/* Present is still certain, absent is not. */
			assert_int_equal(reddn_table_get(t, "none", 4, &val, &len), -EAGAIN);
			reddn_table_close(t);
		} else {
			model_check(t, &m);
			reddn_table_close(t);
		}
		t = table_reopen(fd, REDDN_TABLE_WRITE);
		model_check(t, &m);
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
	int fd = table_file();
	struct reddn_table *t = table_create(fd, &(struct reddn_table_options){.buckets = 4, .seed = 9});
	struct reddn_table_stat st;
	struct reddn_place p;
	uint64_t *words, b;
	uint8_t *map;

	assert_int_equal(reddn_table_put(t, "x", 1, "y", 1), 0);
	reddn_table_stat(t, &st);
	map = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	words = (uint64_t *)(map + st.buckets_off);
	p = reddn_hash_key(st.hash_seed, st.buckets, "x", 1);
	b = words[2 * p.bucket[0] + 1] ? p.bucket[0] : p.bucket[1];
	words[2 * b + 1] = 0;
	reddn_table_close(t);
	t = table_reopen(fd, REDDN_TABLE_WRITE);
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
		struct model_pair *p = model_find(m, &key, 4);

		if (p)
			model_delete(m, p);
	}
}

static bool same_as_model(struct reddn_table *t, struct model *m, uint32_t key)
{
	struct model_pair *p = model_find(m, &key, 4);
	const void *val;
	size_t len;
	int r = reddn_table_get(t, &key, 4, &val, &len);

	return p ? r == 0 && len == p->val_len && !memcmp(val, p->val, len) : r == REDDN_TABLE_MISS;
}

static void test_kill(void **state)
{
	struct crash *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = table_file();
	struct model m = {0};
	uint64_t applied = 0, key_mismatch;

	srandom(3);
	reddn_table_close(table_create(fd,
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
		t = table_reopen(fd, REDDN_TABLE_WRITE);
		while (applied < shared->done)
			crash_apply(&m, applied++);
		crash_op(applied, &key, val, &len, &del);
		/* Either the operation under way has happened or not; all others have. */
		if (!same_as_model(t, &m, key))
			crash_apply(&m, applied++);
		shared->done = applied;
		model_check(t, &m);
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
	struct model_pair *p, *tmp;
	uint64_t pos = 0;
	int r = reddn_table_open_fd(&t, fd, flags, table_why, sizeof(table_why));

	if (r < 0) {
		/* It may be taken for a store */
		assert_true(r == -EBADMSG || r == -ENOMEM || (flags && r == -EROFS));
		assert_true(strlen(table_why) > 8);
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
	int fd = table_file(), copy = table_file();
	struct reddn_table *t = table_create(
		fd, &(struct reddn_table_options){
			    .buckets = 32, .heap_size = 8000, .max_key = 8, .max_value = 400, .seed = 4});
	struct reddn_table_stat st;
	struct model m = {0};
	unsigned refused = 0, tried = 0;
	uint8_t *good, *bad;

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
		assert_int_equal(reddn_table_open_fd(&t, copy, 0, table_why, sizeof(table_why)), -EBADMSG);
	}
	munmap(good, st.file_size);
	munmap(bad, st.file_size);
	model_free(&m);
	close(fd);
	close(copy);
}

/* ---- a table that takes the name of another ---- */

static int (*at_rename)(const char *from, const char *to); /* instead of it, in name.c */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
	return at_rename(from, to);
}

static int die(const char *from, const char *to)
{
	return raise(SIGKILL);
}

static int refuse(const char *from, const char *to)
{
	errno = EDQUOT;
	return -1;
}

/* Another process opens the table of that name, and finds the new one, which may still have its first writer.
 */
static pid_t opener;

static int rename_while_opened(const char *from, const char *to)
{
	const struct timespec nap = {.tv_nsec = 50000000};
	struct reddn_table_stat st = {.entries = 99};
	struct reddn_table *t;
	int r;

	opener = fork();
	if (opener == 0) {
		/* Not the locks of the replacement */
		closefrom(3);
		r = reddn_table_open(&t, to, REDDN_TABLE_WRITE, NULL, 0);
		if (r == 0)
			reddn_table_stat(t, &st);
		_exit(r == -EBUSY ? 0 : (int)st.entries);
	}
	nanosleep(&nap, NULL);
	return __real_rename(from, to);
}

static struct reddn_table_stat named(const char *file, int flags)
{
	struct reddn_table_stat st;
	struct reddn_table *t;

	assert_int_equal(reddn_table_open(&t, file, flags, table_why, sizeof(table_why)), 0);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	return st;
}

static int replace(const char *file, int (*at)(const char *from, const char *to), struct reddn_table **t)
{
	const struct reddn_table_options opt = {.capacity = 100, .replace = 1};

	at_rename = at;
	return reddn_table_create(t, file, &opt, table_why, sizeof(table_why));
}

/* A replacement ends at the moment between the mark and the new name. */
static void test_half_replaced(void **state)
{
	char path[] = "/dev/shm/test-crash-XXXXXX", file[64], left[96];
	glob_t found = {0};
	struct reddn_table *t, *reader;
	struct reddn_table_repair repaired;
	struct reddn_table_stat st;
	uint64_t epoch;
	int fd, status;
	pid_t pid;

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof(file), "%s/t", path);
	assert_int_equal(replace(file, refuse, &t), 0); /* nothing to replace */
	assert_int_equal(reddn_table_put(t, "k", 1, "v", 1), 0);
	reddn_table_close(t);
	epoch = named(file, 0).epoch;
	/* It fails: nothing has happened. */
	assert_int_equal(replace(file, refuse, &t), -EDQUOT);
	assert_non_null(strstr(table_why, file));
	assert_int_equal(named(file, 0).epoch, epoch);
	/* The program dies. The table is retired, and whole. */
	pid = fork();
	if (pid == 0)
		_exit(replace(file, die, &t));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	snprintf(left, sizeof(left), "%s.*.new", file);
	assert_int_equal(glob(left, 0, NULL, &found), 0);
	assert_int_equal(unlink(found.gl_pathv[0]), 0);
	globfree(&found);
	assert_int_equal(reddn_table_open(&reader, file, 0, table_why, sizeof(table_why)), 0);
	reddn_table_stat(reader, &st);
	assert_int_equal(st.epoch, 0);
	assert_int_equal(st.entries, 1);
	fd = open(file, O_RDWR);
	assert_int_equal(
		reddn_table_open_fd(&t, fd, REDDN_TABLE_WRITE, table_why, sizeof(table_why)), -ESTALE);
	close(fd);
	/* Its next writer takes it into use, as another one to clients. */
	assert_int_equal(reddn_table_open(&t, file, REDDN_TABLE_WRITE, table_why, sizeof(table_why)), 0);
	reddn_table_repaired(t, &repaired);
	assert_int_equal(repaired.replacements, 1);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	assert_int_equal(st.entries, 1);
	assert_true(st.epoch > epoch);
	epoch = st.epoch;
	reddn_table_stat(reader, &st);
	assert_int_equal(st.epoch, epoch);
	assert_int_equal(named(file, REDDN_TABLE_WRITE).epoch, epoch);
	/* A writer that comes then does not take a replacement for one that was left. */
	assert_int_equal(replace(file, rename_while_opened, &t), 0);
	reddn_table_close(t);
	assert_int_equal(waitpid(opener, &status, 0), opener);
	assert_int_equal(status, 0);
	reddn_table_stat(reader, &st);
	assert_int_equal(st.epoch, 0);
	reddn_table_close(reader);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_moves),
		cmocka_unit_test(test_half_entries),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_half_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
