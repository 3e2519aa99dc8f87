/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/reddn-table.h"
#include "protocol/table-hash.h"
#include "util/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/dev/shm/test-upgrade-XXXXXX", file[64], why[256];

/* A table of format 1, made by hand: entry i has key "key i" and lies in some bucket. */
struct old {
	uint64_t buckets, entries, heap_size, next;
	uint32_t max_value, val_len;
	uint8_t *map;
	uint64_t size;
	struct reddn_table_header *h;
};

static uint64_t old_bucket(const struct old *o, uint64_t i)
{
	return (i * 7 + 3) % o->buckets;
}

static void old_put(struct old *o, uint64_t bucket, const char *key, const void *val, uint32_t val_len)
{
	uint64_t *word = (uint64_t *)(o->map + o->h->buckets_off) + 2 * bucket;
	struct reddn_record *r = (struct reddn_record *)(o->map + o->h->heap_off + o->next);
	uint64_t size = reddn_record_size(strlen(key), val_len);

	r->key_len = (uint32_t)strlen(key);
	r->val_len = val_len;
	memcpy(r->bytes, key, r->key_len);
	memcpy(r->bytes + r->key_len, val, val_len);
	r->sum = reddn_record_sum(r);
	word[0] = reddn_locator(o->next, size);
	word[1] = 0xa5a5a5a5a5a500 + bucket; /* 56 bits */
	o->next += (size + 63) / 64 * 64;
}

static void old_make(struct old *o)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0640);
	uint8_t *val = calloc(1, o->val_len + 8);

	assert_true(fd >= 0);
	o->heap_size = o->heap_size ? o->heap_size : 1 << 20;
	o->size = 4096 + (o->buckets * 16 + 4095) / 4096 * 4096 + o->heap_size;
	assert_int_equal(ftruncate(fd, (off_t)o->size), 0);
	o->map = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(o->map != MAP_FAILED);
	close(fd);
	o->h = (struct reddn_table_header *)o->map;
	*o->h = (struct reddn_table_header){.magic = REDDN_TABLE_MAGIC_1,
		.version = 1,
		.header_size = sizeof(*o->h),
		.hash_seed = 12345,
		.buckets = o->buckets,
		.buckets_off = 4096,
		.heap_off = o->size - o->heap_size,
		.heap_size = o->heap_size,
		.file_size = o->size,
		.max_key = 32,
		.max_value = o->max_value ? o->max_value : 1000,
		.live = {.entries = o->entries, .moves = 24, .epoch = 9}};
	o->next = 64;
	for (uint64_t i = 0; i < o->buckets; i++)
		((uint64_t *)(o->map + 4096))[2 * i] = reddn_locator(0, 16);
	for (uint64_t i = 0; i < o->entries; i++) {
		char key[32];

		snprintf(key, sizeof(key), "key %" PRIu64, i);
		memcpy(val, &i, 8);
		old_put(o, old_bucket(o, i), key, val, 8 + o->val_len);
	}
	free(val);
}

/* Every entry of @o, and no other */
static void assert_upgraded(const struct old *o)
{
	struct reddn_table *t;
	struct reddn_table_stat st;

	if (reddn_table_open(&t, file, REDDN_TABLE_WRITE, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	reddn_table_stat(t, &st);
	assert_int_equal(st.entries, o->entries);
	for (uint64_t i = 0; i < o->entries; i++) {
		char key[32];
		const void *val;
		size_t len;

		snprintf(key, sizeof(key), "key %" PRIu64, i);
		assert_int_equal(reddn_table_get(t, key, strlen(key), &val, &len), 0);
		assert_int_equal(len, 8 + o->val_len);
		assert_memory_equal(val, &i, 8);
	}
	reddn_table_close(t);
}

/* Only the table is in its folder */
static void assert_alone(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			assert_string_equal(e->d_name, "t");
	closedir(d);
}

static int upgrade(struct reddn_table_upgrade *done)
{
	*why = '\0';
	return reddn_table_upgrade(file, done, NULL, NULL, why, sizeof(why));
}

static void old_free(struct old *o)
{
	munmap(o->map, o->size);
}

static void test_upgrade(void **state)
{
	struct old o = {.buckets = 256, .entries = 80, .val_len = 33};
	struct reddn_table_upgrade done;
	struct reddn_table *t;
	struct stat st;

	(void)state;
	old_make(&o);
	assert_int_equal(reddn_table_open(&t, file, 0, why, sizeof(why)), -EPROTONOSUPPORT);
	assert_non_null(strstr(why, "reddn-table upgrade"));
	assert_int_equal(reddn_table_open(&t, file, REDDN_TABLE_WRITE, why, sizeof(why)), -EPROTONOSUPPORT);
	assert_int_equal(upgrade(&done), 0);
	assert_int_equal(done.from, 1);
	assert_int_equal(done.to, 2);
	assert_int_equal(done.after.entries, 80);
	assert_int_equal(done.after.buckets, 256);
	assert_int_equal(done.after.heap_size, o.heap_size);
	assert_int_equal(done.after.hash_seed, 12345);
	assert_int_equal(done.after.max_key, 32);
	assert_int_equal(done.after.max_value, 1000);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_upgraded(&o);
	assert_alone();
	/* The old file is as it was for those who have it. */
	assert_int_equal(o.h->magic, REDDN_TABLE_MAGIC_1);
	assert_int_equal(upgrade(&done), REDDN_TABLE_CURRENT);
	assert_int_equal(done.after.entries, 80);
	assert_upgraded(&o);
	old_free(&o);
}

/* Records that the new format makes longer, and a heap that was full */
static void test_full_heap(void **state)
{
	struct old o = {.buckets = 64, .entries = 24, .val_len = 0xa500 - 16 - 8 - 5, .max_value = 0xa600};
	struct reddn_table_upgrade done;

	(void)state;
	o.heap_size = (24 * 0xa540 + 64 + 4095) / 4096 * 4096;
	old_make(&o);
	assert_int_equal(upgrade(&done), 0);
	assert_true(done.after.heap_size > o.heap_size);
	assert_upgraded(&o);
	old_free(&o);
}

/* As many entries as no other placement has room for */
static void test_full_buckets(void **state)
{
	struct old o = {.buckets = 64, .entries = 60};
	struct reddn_table_upgrade done;

	(void)state;
	old_make(&o);
	assert_int_equal(upgrade(&done), 0);
	assert_true(done.after.buckets > 64);
	assert_upgraded(&o);
	old_free(&o);
}

/* A writer that died: an entry in two buckets, and one without a fingerprint yet */
static void test_unfinished(void **state)
{
	struct old o = {.buckets = 64, .entries = 20};
	struct reddn_table_upgrade done;
	uint64_t *words, a, b;

	(void)state;
	old_make(&o);
	words = (uint64_t *)(o.map + 4096);
	o.h->live.moves = 25;
	a = old_bucket(&o, o.entries);
	b = old_bucket(&o, o.entries + 1);
	assert_true(!words[2 * a + 1] && !words[2 * b + 1]);
	words[2 * a] = words[2 * old_bucket(&o, 5)];
	words[2 * a + 1] = words[2 * old_bucket(&o, 5) + 1];
	words[2 * b] = words[2 * old_bucket(&o, 6)];
	assert_int_equal(upgrade(&done), 0);
	assert_upgraded(&o);
	old_free(&o);
}

static int stop(void *arg, uint64_t buckets, uint64_t total)
{
	assert_true(buckets <= total);
	return ++*(int *)arg;
}

/* Whatever goes wrong, the file is as it was and nothing lies beside it */
static void test_refused(void **state)
{
	struct old o = {.buckets = 64, .entries = 20};
	struct reddn_table_upgrade done;
	struct reddn_record *r;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat before, after;
	int fd, calls = 0;

	(void)state;
	old_make(&o);
	assert_int_equal(stat(file, &before), 0);
	/* a live writer */
	fd = open(file, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(upgrade(&done), -EBUSY);
	assert_non_null(strstr(why, "another process"));
	close(fd);
	/* a signal */
	assert_int_equal(reddn_table_upgrade(file, &done, stop, &calls, why, sizeof(why)), -EINTR);
	assert_int_equal(calls, 1);
	assert_alone();
	/* damage */
	r = (struct reddn_record *)(o.map + o.h->heap_off + 64);
	r->bytes[0] ^= 1;
	assert_int_equal(upgrade(&done), -EBADMSG);
	assert_non_null(strstr(why, "bucket 3"));
	r->bytes[0] ^= 1;
	o.h->heap_size += 4096;
	assert_int_equal(upgrade(&done), -EBADMSG);
	o.h->heap_size -= 4096;
	o.h->version = 7;
	assert_int_equal(upgrade(&done), -EBADMSG);
	o.h->version = 1;
	o.h->magic ^= 1;
	assert_int_equal(upgrade(&done), -EBADMSG);
	assert_non_null(strstr(why, "not a reddn table"));
	o.h->magic ^= 1;
	assert_int_equal(reddn_table_upgrade("/dev/null", &done, NULL, NULL, why, sizeof(why)), -EBADMSG);
	assert_int_equal(reddn_table_upgrade("/nowhere/t", &done, NULL, NULL, why, sizeof(why)), -ENOENT);
	assert_alone();
	assert_int_equal(stat(file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(upgrade(&done), 0);
	assert_upgraded(&o);
	/* a table of this format that is cut short */
	assert_int_equal(truncate(file, 4096), 0);
	assert_int_equal(upgrade(&done), -EBADMSG);
	assert_non_null(strstr(why, "truncated"));
	old_free(&o);
}

/* Any byte of the old table may be wrong: it is refused, or what it gives are records. Never a crash. */
static void test_damage(void **state)
{
	struct old o = {.buckets = 64, .entries = 20, .val_len = 50, .heap_size = 8192};
	struct reddn_table_upgrade done;
	unsigned refused = 0;
	uint8_t *good;

	(void)state;
	srandom(4);
	old_make(&o);
	good = malloc(o.size);
	assert_non_null(good);
	memcpy(good, o.map, o.size);
	old_free(&o);
	for (int round = 0; round < 2000; round++) {
		int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600), r;
		struct reddn_table *t;
		struct reddn_table_entry e;
		uint64_t pos = 0, seen = 0;

		assert_int_equal(write(fd, good, o.size), o.size);
		for (int k = 0; k < 3; k++) {
			long at = random() % 2 ? 8 + random() % 200 : random() % (long)o.size;
			uint8_t byte = (uint8_t)random();

			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		close(fd);
		r = upgrade(&done);
		if (r < 0) {
			assert_true(r == -EBADMSG || r == -ENOSPC || r == -ENOMEM);
			assert_true(strlen(why) > 8);
			refused++;
			continue;
		}
		assert_int_equal(reddn_table_open(&t, file, 0, why, sizeof(why)), 0);
		while (reddn_table_next(t, &pos, &e) == 0)
			seen += e.key_len > 4 && !memcmp(e.key, "key ", 4);
		reddn_table_close(t);
		assert_int_equal(seen, done.after.entries);
	}
	assert_alone();
	print_message("%u of 2000 damaged tables refused\n", refused);
	assert_true(refused > 200);
	free(good);
}

/* The name may be a link, which stays one */
static void test_link(void **state)
{
	struct old o = {.buckets = 64, .entries = 20};
	struct reddn_table_upgrade done;
	char link[80];
	struct stat st;

	(void)state;
	old_make(&o);
	snprintf(link, sizeof(link), "%s/.link", dir);
	assert_int_equal(symlink("t", link), 0);
	assert_int_equal(reddn_table_upgrade(link, &done, NULL, NULL, why, sizeof(why)), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_upgraded(&o);
	assert_int_equal(unlink(link), 0);
	old_free(&o);
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(file, sizeof(file), "%s/t", mkdtemp(dir));
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_full_heap),
		cmocka_unit_test(test_full_buckets),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_link),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
