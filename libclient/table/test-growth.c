/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that become larger while they are written and read. */
#include "libclient/table/test-model.h"
#include "protocol/table-format.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

struct place {
	char dir[32], path[48];
};

static int place_begin(void **state)
{
	static struct place p;

	p = (struct place){.dir = "/dev/shm/test-growth-XXXXXX"};
	assert_non_null(mkdtemp(p.dir));
	snprintf(p.path, sizeof(p.path), "%s/table", p.dir);
	*state = &p;
	return 0;
}

/* Nothing but the table is left. */
static int place_end(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	return rmdir(p->dir);
}

static struct reddn_table *make(struct place *p, const struct reddn_table_options *opt)
{
	struct reddn_table *t = NULL;

	assert_int_equal(reddn_table_create(&t, p->path, opt, table_why, sizeof(table_why)), 0);
	return t;
}

static struct reddn_table *reader_of(struct place *p)
{
	struct reddn_table *t = NULL;

	assert_int_equal(reddn_table_open(&t, p->path, 0, table_why, sizeof(table_why)), 0);
	return t;
}

static struct reddn_table_stat stat_of(struct reddn_table *t)
{
	struct reddn_table_stat st;

	reddn_table_stat(t, &st);
	return st;
}

/* There is the file of a larger table. */
static bool grows(const struct place *p)
{
	char pattern[64];
	glob_t g = {0};
	bool is;

	snprintf(pattern, sizeof(pattern), "%s.*.new", p->path);
	is = glob(pattern, 0, NULL, &g) == 0;
	globfree(&g);
	return is;
}

static int step(struct reddn_table *t, uint64_t buckets)
{
	return reddn_table_grow_step(t, buckets, table_why, sizeof(table_why));
}

static void put(struct reddn_table *t, struct model *m, uint32_t key, const void *val, size_t len)
{
	assert_int_equal(reddn_table_put(t, &key, sizeof(key), val, len), 0);
	model_put(m, &key, sizeof(key), val, len);
}

/* One operation at random, on one of @keys keys */
static void change(struct reddn_table *t, struct model *m, uint32_t keys)
{
	uint32_t key = (uint32_t)random() % keys;
	struct model_pair *p = model_find(m, &key, sizeof(key));
	uint8_t val[300];
	size_t len = (size_t)random() % sizeof(val);

	memset(val, (int)random(), len);
	if (random() % 4) {
		put(t, m, key, val, len);
		return;
	}
	assert_int_equal(reddn_table_delete(t, &key, sizeof(key)), p ? 0 : REDDN_TABLE_MISS);
	if (p)
		model_delete(m, p);
}

/* A table that begins with room for a few entries takes thousands. */
static void test_by_itself(void **state)
{
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.buckets = 4,
						.heap_size = 4096,
						.max_key = 4,
						.max_value = 300,
						.grow = 1}),
			   *first = reader_of(p), *reader;
	struct model m = {0};

	for (unsigned i = 0; i < 20000; i++) {
		change(t, &m, 8000);
		if (i % 4000 == 3999) {
			model_check(t, &m);
			reader = reader_of(p);
			model_check(reader, &m);
			reddn_table_close(reader);
		}
	}
	assert_true(stat_of(t).buckets > 4096);
	assert_int_equal(stat_of(first).epoch, 0);
	assert_int_equal(stat_of(first).buckets, 4);
	reddn_table_close(first);
	reddn_table_close(t);
	/* It still does when it is opened again. */
	assert_int_equal(reddn_table_open(&t, p->path, REDDN_TABLE_WRITE, table_why, sizeof(table_why)), 0);
	for (uint32_t k = 8000; k < 20000; k++)
		put(t, &m, k, "", 0);
	model_check(t, &m);
	reddn_table_close(t);
	model_free(&m);
}

/* Bytes that the file of the larger table has allocated */
static uint64_t made(const struct place *p)
{
	char pattern[64];
	glob_t g = {0};
	struct stat st;

	snprintf(pattern, sizeof(pattern), "%s.*.new", p->path);
	assert_int_equal(glob(pattern, 0, NULL, &g), 0);
	assert_int_equal(stat(g.gl_pathv[0], &st), 0);
	globfree(&g);
	return (uint64_t)st.st_blocks * 512;
}

/* A table that grows by itself makes the larger file in many puts, and what they put is in it. */
static void test_made_in_steps(void **state)
{
	enum { BUCKETS = 1 << 16, HEAP = 1 << 23 };
	struct place *p = *state;
	struct reddn_table *t = make(
		p, &(struct reddn_table_options){
			   .buckets = BUCKETS, .heap_size = HEAP, .max_key = 4, .max_value = 300, .grow = 1});
	struct model m = {0};
	uint64_t before, now;
	uint32_t k = 0;

	while (!grows(p))
		put(t, &m, k++, "v", 1);
	assert_int_equal(stat_of(t).buckets, BUCKETS);
	/* It has not begun with anything else, and a writer that ends leaves nothing */
	assert_true(made(p) < HEAP / 32);
	for (unsigned i = 0; i < 20; i++)
		change(t, &m, k);
	assert_true(made(p) < HEAP / 4);
	reddn_table_close(t);
	assert_false(grows(p));
	assert_int_equal(reddn_table_open(&t, p->path, REDDN_TABLE_WRITE, table_why, sizeof(table_why)), 0);
	model_check(t, &m);
	for (before = 0; stat_of(t).buckets == BUCKETS; before = now) {
		change(t, &m, k);
		put(t, &m, k++, "v", 1);
		now = grows(p) ? made(p) : before;
		assert_true(now - before <= HEAP / 16);
	}
	assert_int_equal(stat_of(t).buckets, 2 * BUCKETS);
	model_check(t, &m);
	reddn_table_close(t);
	model_free(&m);
}

static void check_as_of(struct reddn_table *t, struct reddn_as_of expected)
{
	struct reddn_as_of as_of = stat_of(t).as_of;

	assert_memory_equal(&as_of, &expected, sizeof(expected));
}

/* A larger table is as new as the one before, also if that is stated while it grows. */
static void test_as_of(void **state)
{
	const struct reddn_as_of first = {1000, 2000, 7, REDDN_FOLLOWS, 9},
				 second = {1500, 2500, 7, REDDN_FOLLOWS | REDDN_COMPLETE, 9};
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.buckets = 4, .heap_size = 4096}),
			   *reader;

	assert_int_equal(reddn_table_set_as_of(t, &first), 0);
	assert_int_equal(reddn_table_grow(t, &(struct reddn_table_options){0}, NULL, 0), 0);
	assert_int_equal(reddn_table_set_as_of(t, &second), 0);
	assert_int_equal(reddn_table_set_slots(t, 7, 8), 0);
	assert_int_equal(step(t, UINT64_MAX), REDDN_TABLE_END);
	assert_true(stat_of(t).buckets > 4);
	check_as_of(t, second);
	reader = reader_of(p);
	check_as_of(reader, second);
	assert_int_equal(stat_of(reader).slots, 8);
	/* A replacement has entries from elsewhere */
	reddn_table_close(t);
	t = make(p, &(struct reddn_table_options){.buckets = 4, .heap_size = 4096, .replace = 1});
	assert_int_equal(stat_of(t).as_of.flags, 0);
	reddn_table_close(t);
	reddn_table_close(reader);
}

/* Steps, and changes between them; entries move from buckets that are still to be copied to others. */
static void test_in_steps(void **state)
{
	struct place *p = *state;
	const struct reddn_table_options full = {.buckets = 8192, .max_value = 300};

	for (unsigned seed = 1; seed <= 8; seed++) {
		struct reddn_table *t = make(p, &full), *old;
		struct model m = {0};
		int r = 0;

		srandom(seed);
		/* Near half of the buckets a put may find no room, by chance */
		for (uint32_t k = 0; k < 2400; k++)
			put(t, &m, k, &k, sizeof(k));
		assert_int_equal(chmod(p->path, 0604), 0);
		old = reader_of(p);
		assert_int_equal(reddn_table_grow(t, &(struct reddn_table_options){.heap_size = 32 << 20},
					 table_why, sizeof(table_why)),
			0);
		assert_int_equal(reddn_table_grow(t, &full, table_why, sizeof(table_why)), -EALREADY);
		assert_int_not_equal(stat_of(old).epoch, 0);
		while (r == 0) {
			change(t, &m, 2600);
			r = step(t, (uint64_t)random() % 100);
		}
		assert_int_equal(r, REDDN_TABLE_END);
		assert_int_equal(step(t, 1), REDDN_TABLE_END);
		assert_int_equal(stat_of(old).epoch, 0);
		assert_int_equal(stat_of(t).buckets, 16384);
		assert_int_equal(stat_of(t).hash_seed, stat_of(old).hash_seed);
		assert_int_equal(stat_of(t).max_value, 300);
		model_check(t, &m);
		for (unsigned i = 0; i < 100; i++)
			change(t, &m, 5000);
		model_check(t, &m);
		reddn_table_close(old);
		old = reader_of(p);
		model_check(old, &m);
		reddn_table_close(old);
		reddn_table_close(t);
		assert_int_equal(unlink(p->path), 0);
		model_free(&m);
	}
}

/* What does not come to an end leaves the table as it was. */
static void test_failures(void **state)
{
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.buckets = 1024, .max_value = 300}),
			   *other;
	struct reddn_table_options opt = {.heap_size = 4096};
	struct model m = {0};
	int status;
	pid_t child;

	for (uint32_t k = 0; k < 300; k++)
		put(t, &m, k, "some value, which takes more than one granule of the heap, and so on and on",
			70);
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), 0);
	assert_true(grows(p));
	assert_int_equal(step(t, UINT64_MAX), -ENOSPC);
	assert_non_null(strstr(table_why, "no room for all entries"));
	assert_false(grows(p));
	assert_int_equal(step(t, 1), REDDN_TABLE_END);
	/* In a put, whose own result it is not */
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), 0);
	for (uint32_t k = 0; k < 100; k++)
		put(t, &m, k, "new", 3);
	assert_false(grows(p));
	assert_int_equal(step(t, 1), -ENOSPC);

	opt = (struct reddn_table_options){.max_value = 10};
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), 0);
	assert_int_equal(step(t, UINT64_MAX), -EMSGSIZE);
	assert_non_null(strstr(table_why, "longer than the larger table allows"));

	/* A child ends, the writer goes on. */
	opt = (struct reddn_table_options){0};
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), 0);
	child = fork();
	if (child == 0) {
		reddn_table_close(t);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(grows(p));
	model_check(t, &m);
	assert_int_equal(step(t, 5), 0);
	reddn_table_close(t);
	assert_false(grows(p));

	/* Another takes the name. */
	assert_int_equal(reddn_table_open(&t, p->path, REDDN_TABLE_WRITE, table_why, sizeof(table_why)), 0);
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), 0);
	child = fork();
	if (child == 0)
		_exit(reddn_table_create(
			      &other, p->path, &(struct reddn_table_options){.replace = 1}, NULL, 0) != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(reddn_table_put(t, "key", 3, "value", 5), -ESTALE);
	assert_int_equal(step(t, UINT64_MAX), -ESTALE);
	assert_non_null(strstr(table_why, "another table has taken the name"));
	assert_int_equal(reddn_table_grow(t, &opt, table_why, sizeof(table_why)), -ESTALE);
	reddn_table_close(t);
	other = reader_of(p);
	assert_int_equal(stat_of(other).entries, 0);
	assert_int_equal(reddn_table_grow(other, &opt, table_why, sizeof(table_why)), -EROFS);
	reddn_table_close(other);
	model_free(&m);
}

static void grow(struct reddn_table *t)
{
	const struct reddn_table_options twice = {0};

	assert_int_equal(reddn_table_grow(t, &twice, table_why, sizeof(table_why)), 0);
	assert_int_equal(step(t, UINT64_MAX), REDDN_TABLE_END);
}

/* What a writer has left that was killed is removed, and nothing else: not what a maker is at, nor a file of
 * somebody whose name is like that. */
static void test_left(void **state)
{
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.capacity = 100}), *other = NULL;
	const char *const ends[] = {".0123456789abcdef.new", ".0123456789abcdee.new", ".old.new"};
	char file[3][80];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(file[i], sizeof(file[i]), "%s%s", p->path, ends[i]);
		int fd = open(file[i], O_RDWR | O_CREAT | O_EXCL, 0600);

		assert_true(fd >= 0);
		if (i == 1)
			other = table_create(fd, &(struct reddn_table_options){0});
		assert_int_equal(close(fd), 0);
	}
	grow(t);
	assert_int_equal(access(file[0], F_OK), -1);
	reddn_table_close(other);
	assert_int_equal(unlink(file[1]), 0);
	assert_int_equal(unlink(file[2]), 0);
	reddn_table_close(t);
}

/* Owner and rights are those of the smaller table, with an ACL and without. */
static void test_rights(void **state)
{
	/* version 2; the owner rw, user 1 rw, the group nothing, mask rw, others nothing */
	static const uint32_t acl[] = {2, 0x60001, UINT32_MAX, 0x60002, 1, 0x00004, UINT32_MAX, 0x60010,
		UINT32_MAX, 0x00020, UINT32_MAX};
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.capacity = 100});
	uid_t owner = geteuid() == 0 ? 1 : geteuid();
	uint8_t is[200];
	struct stat st;

	assert_int_equal(chown(p->path, owner, (gid_t)-1), 0);
	assert_int_equal(chmod(p->path, 0604), 0);
	grow(t);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_uid, owner);
	assert_int_equal(st.st_mode & 0777, 0604);
	assert_int_equal(setxattr(p->path, "system.posix_acl_access", acl, sizeof(acl), 0), 0);
	grow(t);
	assert_int_equal(getxattr(p->path, "system.posix_acl_access", is, sizeof(is)), sizeof(acl));
	assert_memory_equal(is, acl, sizeof(acl));
	assert_int_equal(chmod(p->path, 0600), 0);
	assert_int_equal(removexattr(p->path, "system.posix_acl_access"), 0);
	grow(t);
	assert_int_equal(getxattr(p->path, "system.posix_acl_access", is, sizeof(is)), -1);
	reddn_table_close(t);
}

/* Who may only read the table keeps nobody off; who may write it keeps the larger one from its name, and no
 * put waits for that. */
static void test_locked(void **state)
{
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.buckets = 64});
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = REDDN_TABLE_LOCK_NAME, .l_len = 1};
	int reads = open(p->path, O_RDONLY), writes;

	assert_int_equal(flock(reads, LOCK_EX), 0);
	grow(t);
	writes = open(p->path, O_RDWR);
	assert_int_equal(fcntl(writes, F_OFD_SETLK, &lock), 0);
	assert_int_equal(
		reddn_table_grow(t, &(struct reddn_table_options){0}, table_why, sizeof(table_why)), 0);
	assert_int_equal(step(t, UINT64_MAX), -EBUSY);
	assert_int_equal(reddn_table_put(t, "key", 3, "value", 5), 0);
	assert_true(grows(p));
	assert_int_equal(close(writes), 0);
	assert_int_equal(reddn_table_put(t, "more", 4, "value", 5), 0);
	assert_false(grows(p));
	assert_int_equal(close(reads), 0);
	reddn_table_close(t);
}

/* What a get has returned can be put, also where that lets the table grow. */
static void test_own_values(void **state)
{
	struct place *p = *state;
	struct reddn_table *t =
		make(p, &(struct reddn_table_options){
				.buckets = 4, .heap_size = 4096, .max_key = 4, .max_value = 300, .grow = 1});
	uint8_t value[300];
	const void *got = value;
	size_t len;

	memset(value, 0xab, sizeof(value));
	for (uint32_t k = 0; k < 500; k++) {
		assert_int_equal(reddn_table_put(t, &k, sizeof(k), got, sizeof(value)), 0);
		assert_int_equal(reddn_table_get(t, &k, sizeof(k), &got, &len), 0);
		assert_int_equal(len, sizeof(value));
		assert_memory_equal(got, value, sizeof(value));
	}
	reddn_table_close(t);
}

/* A damaged record does not get a checksum that is right. */
static void test_damage(void **state)
{
	struct place *p = *state;
	struct reddn_table *t = make(p, &(struct reddn_table_options){.capacity = 100});
	struct reddn_table_stat st = stat_of(t);
	int fd = open(p->path, O_RDWR);
	uint8_t *map = mmap(NULL, st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t *value;

	assert_int_equal(reddn_table_put(t, "key", 3, "a value", 7), 0);
	value = memmem(map + st.heap_off, st.heap_size, "a value", 7);
	assert_non_null(value);
	value[1] = '-';
	assert_int_equal(
		reddn_table_grow(t, &(struct reddn_table_options){0}, table_why, sizeof(table_why)), 0);
	assert_int_equal(step(t, UINT64_MAX), -EBADMSG);
	assert_non_null(strstr(table_why, "damaged"));
	value[1] = ' ';
	reddn_table_close(t);
	munmap(map, st.file_size);
	close(fd);

	/* A table without a name cannot give it to another. */
	fd = table_file();
	t = table_create(fd, &(struct reddn_table_options){.buckets = 4, .grow = 1});
	assert_int_equal(
		reddn_table_grow(t, &(struct reddn_table_options){0}, table_why, sizeof(table_why)), -EINVAL);
	for (uint32_t k = 0, r = 0; !r; k++) {
		r = (uint32_t)reddn_table_put(t, &k, sizeof(k), "", 0);
		assert_true(r == 0 || (int)r == -ENOSPC);
	}
	reddn_table_close(t);
	close(fd);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static fsblkcnt_t most_free = UINT64_MAX; /* blocks of the file system */

/* The name that 64-bit file offsets give it */
int __real_fstatvfs64(int fd, struct statvfs *fs);
int __wrap_fstatvfs64(int fd, struct statvfs *fs);

int __wrap_fstatvfs64(int fd, struct statvfs *fs)
{
	int r = __real_fstatvfs64(fd, fs);

	if (most_free < UINT64_MAX) {
		fs->f_blocks = most_free + 1;
		fs->f_bavail = most_free;
	}
	return r;
}

/* No larger table can be made: what there is stays, and the error is @error, whatever errno was before. */
static void check_no_room(struct place *p, int error)
{
	const struct reddn_table_options twice = {0}, new = {.replace = 1};
	struct reddn_table *t = make(p, &(struct reddn_table_options){.buckets = 4, .grow = 1}),
			   *other = NULL;
	const void *val;
	char path[64];
	uint32_t k;
	size_t len;
	int r = 0;

	assert_int_equal(reddn_table_put(t, "key", 3, "value", 5), 0);
	most_free = error == -ENOSPC ? 1 : UINT64_MAX;
	if (error == -EFBIG)
		limit_files(1 << 12);
	errno = 0;
	assert_int_equal(reddn_table_grow(t, &twice, table_why, sizeof(table_why)), error);
	assert_non_null(strstr(table_why, strerror(-error)));
	errno = 0;
	for (k = 0; r == 0 && k < 100; k++)
		r = reddn_table_put(t, &k, sizeof(k), "value", 5);
	assert_int_equal(r, -ENOSPC);
	assert_false(grows(p));
	snprintf(path, sizeof(path), "%s/other", p->dir);
	errno = 0;
	assert_int_equal(reddn_table_create(&other, path, &new, table_why, sizeof(table_why)), error);
	errno = 0;
	assert_int_equal(reddn_table_create(&other, p->path, &new, table_why, sizeof(table_why)), error);
	assert_null(other);
	assert_int_equal(reddn_table_get(t, "key", 3, &val, &len), 0);
	most_free = UINT64_MAX;
	if (error == -EFBIG)
		limit_files(RLIM_INFINITY);
	/* The file has kept its name */
	assert_int_equal(reddn_table_put(t, &k, sizeof(k), "value", 5), 0);
	reddn_table_close(t);
	assert_int_equal(unlink(p->path), 0);
}

static void test_no_room(void **state)
{
	check_no_room(*state, -ENOSPC);
	check_no_room(*state, -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_by_itself, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_made_in_steps, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_as_of, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_in_steps, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_failures, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_left, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_rights, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_locked, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_own_values, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_damage, place_begin, place_end),
		cmocka_unit_test_setup_teardown(test_no_room, place_begin, place_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
