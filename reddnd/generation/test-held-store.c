/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores that are open once, however many regions have them, and regions of the wrong kind; files that are
 * cut off or overwritten, and other writers. */
#include "reddnd/generation/region.h"
#include "reddnd/store/test-rig.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { BYTES = 200 };

static char path[64], where[] = "test:1";
static struct catalog_region conf;

static int setup(void **state)
{
	struct rig rig = {
		.buckets = 64, .chunk = 65536, .chunks = 4, .header = 15, .max_key = 32, .max_value = 100};
	int fd;

	strcpy(path, "/dev/shm/held-store-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	rig_make(&rig);
	assert_int_equal(write(fd, rig.file, rig.size), (ssize_t)rig.size);
	close(fd);
	free(rig.file);
	conf = (struct catalog_region){.name = "users", .path = path, .where = where, .store = true};
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static struct region *opened(const char *words)
{
	char why[REGION_WHY];
	struct region *r;

	assert_int_equal(region_open(&r, &conf, 0, -1), 0);
	region_open_store(r);
	assert_int_equal(region_is_bad(r, why), words != NULL);
	if (words && !strstr(why, words))
		fail_msg("no \"%s\" in \"%s\"", words, why);
	return r;
}

static void first_grace(struct held_store *h)
{
	assert_true(held_store_work(h));
	held_store_grace_begins(h);
	held_store_grace_over(h);
}

static uint64_t held(struct held_store *h)
{
	struct store_numbers n;
	uint64_t sum = 0;

	held_store_numbers(h, &n);
	for (unsigned i = 0; i < n.classes; i++)
		sum += n.extents[i].held;
	return sum;
}

static uint64_t sweep_ms(struct held_store *h)
{
	struct store_numbers n;

	held_store_numbers(h, &n);
	return n.sweep_ms;
}

/* As after a reload: the second one has the extents that are held */
static void test_once(void **state)
{
	struct region *a = opened(NULL), *b = opened(NULL);
	struct held_store *h = a->store;
	uint64_t at, before;

	assert_ptr_equal(a->store, b->store);
	/* what is left of a daemon before may read any extent */
	assert_int_equal(held_store_take(h, BYTES, &at), -ENOSPC);
	before = held_store_returned(h);
	first_grace(h);
	assert_true(held_store_returned(h) > before);
	assert_int_equal(held_store_take(h, BYTES, &at), 0);
	region_close(a);
	assert_int_equal(held(h), 1);
	assert_false(held_store_is_shared(h));
	held_store_ref(h);
	assert_true(held_store_is_shared(h));
	region_close(b);
	assert_int_equal(held(h), 1);
	before = held_store_returned(h);
	held_store_give(h, at);
	assert_true(held_store_returned(h) > before);
	held_store_unref(h);
	/* it is another one now */
	a = opened(NULL);
	assert_int_equal(held(a->store), 0);
	assert_int_equal(sweep_ms(a->store), 0);
	assert_int_equal(held_store_take(a->store, BYTES, &at), -ENOSPC);
	first_grace(a->store);
	/* what the caller had stays as it was when there is no other */
	do
		at = UINT64_MAX;
	while (held_store_take(a->store, BYTES, &at) == 0);
	assert_int_equal(at, UINT64_MAX);
	region_close(a);
	/* what somebody still had may have a time at which it expires */
	a = opened(NULL);
	assert_int_not_equal(sweep_ms(a->store), 0);
	region_close(a);
}

/* By another name, before the store is open or after that */
static void test_raw(void **state)
{
	struct catalog_region raw = conf;
	struct region *r, *s;
	char name[80], why[REGION_WHY];

	snprintf(name, sizeof(name), "%s.raw", path);
	assert_int_equal(link(path, name), 0);
	raw.path = name;
	raw.store = false;
	raw.raw = true;
	assert_int_equal(region_open(&r, &raw, 0, -1), 0);
	region_spare_stores(r);
	assert_false(region_is_bad(r, NULL));
	raw.writable = true;
	region_spare_stores(r);
	assert_false(region_is_bad(r, NULL));
	s = opened(NULL);
	raw.writable = false;
	region_spare_stores(r);
	assert_false(region_is_bad(r, NULL));
	raw.writable = true;
	region_spare_stores(r);
	assert_true(region_is_bad(r, why));
	assert_non_null(strstr(why, "it is that of a store"));
	assert_false(region_is_bad(s, NULL));
	region_close(r);
	region_close(s);
	assert_int_equal(unlink(name), 0);
}

static void test_another_writer(void **state)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = REDDN_TABLE_LOCK_WRITER, .l_len = 1};
	CLEANUP(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC), copy = -1;
	struct region *r;

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	r = opened("another program writes it");
	assert_null(r->store);
	region_close(r);
	lock.l_type = F_UNLCK;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	r = opened(NULL);
	copy = held_store_lock(r->store);
	assert_true(copy >= 0);
	lock.l_type = F_WRLCK;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), -1);
	region_close(r); /* whoever has a copy of its descriptor */
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

static void write_store(uint64_t buckets)
{
	struct rig rig = {.buckets = buckets,
		.chunk = 65536,
		.chunks = 4,
		.header = 15,
		.max_key = 32,
		.max_value = 100};
	CLEANUP(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC);

	rig_make(&rig);
	assert_int_equal(pwrite(fd, rig.file, rig.size, 0), (ssize_t)rig.size);
	assert_int_equal(ftruncate(fd, (off_t)rig.size), 0);
	free(rig.file);
}

/* @old, which is bad, and from whose session an extent is: the store in its file is another one as soon as
 * no session can publish. */
static void expect_another(struct region *old, uint64_t at)
{
	struct region *r = opened("have not ended yet"), *again;
	struct held_store *h;

	region_close(r);
	held_store_give(old->store, at);
	held_store_leave(old->store);
	r = opened(NULL);
	h = r->store;
	assert_ptr_not_equal(h, old->store);
	assert_int_equal(held(h), 0);
	first_grace(h);
	assert_int_equal(held_store_take(h, BYTES, &at), 0);
	/* The one before does nothing more, and gives nothing back that is not its own */
	assert_false(held_store_work(old->store));
	again = opened(NULL);
	assert_ptr_equal(again->store, h);
	region_close(old);
	assert_int_equal(held(h), 1);
	assert_false(held_store_is_bad(h));
	region_close(again);
	again = opened(NULL);
	assert_ptr_equal(again->store, h);
	region_close(again);
	region_close(r);
}

static struct region *opened_with_session(uint64_t *at)
{
	struct region *r = opened(NULL);

	first_grace(r->store);
	held_store_join(r->store);
	assert_int_equal(held_store_take(r->store, BYTES, at), 0);
	return r;
}

/* The process goes on, with a region that is bad until its file is whole again */
static void test_cut_off(void **state)
{
	uint64_t at;
	struct region *r = opened_with_session(&at);
	char why[REGION_WHY];

	assert_int_equal(truncate(path, REDDN_TABLE_PAGE), 0);
	held_store_renew(r->store, at);
	assert_true(held_store_is_bad(r->store));
	assert_true(region_is_bad(r, why));
	assert_non_null(strstr(why, "cut off"));
	assert_int_equal(held_store_take(r->store, BYTES, &(uint64_t){0}), -EIO);
	assert_false(held_store_work(r->store));
	assert_true(held_store_published(r->store, 0, 0, 0));
	region_close(opened("the file has 4096"));
	write_store(64);
	expect_another(r, at);
}

/* Nobody has seen it before the region is opened again */
static void test_overwritten(void **state)
{
	uint64_t at;
	struct region *r = opened_with_session(&at);

	write_store(128);
	assert_false(region_is_bad(r, NULL));
	expect_another(r, at);
}

static void copy_file(const char *from, const char *to)
{
	CLEANUP(cleanup_close) int in = open(from, O_RDONLY | O_CLOEXEC);
	CLEANUP(cleanup_close) int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char bytes[4096];
	ssize_t n;

	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
}

/* With a copy of the same store, made before this daemon opened it: by a backup, say */
static void test_overwritten_older(void **state)
{
	char copy[80];
	struct region *r;
	uint64_t at;

	snprintf(copy, sizeof(copy), "%s.copy", path);
	region_close(opened(NULL)); /* by the daemon before */
	copy_file(path, copy);
	r = opened_with_session(&at);
	copy_file(copy, path);
	assert_int_equal(unlink(copy), 0);
	held_store_renew(r->store, at);
	assert_true(held_store_is_bad(r->store));
	expect_another(r, at);
}

/* and after that: its header is the same */
static void test_overwritten_same(void **state)
{
	char copy[80];

	snprintf(copy, sizeof(copy), "%s.copy", path);
	for (unsigned seen = 0; seen < 2; seen++) {
		uint64_t at;
		struct region *r = opened_with_session(&at);

		copy_file(path, copy);
		held_store_work(r->store);
		assert_false(held_store_is_bad(r->store));
		copy_file(copy, path);
		if (seen)
			assert_false(held_store_work(r->store));
		assert_int_equal(held_store_is_bad(r->store), seen);
		assert_int_equal(unlink(copy), 0);
		expect_another(r, at);
	}
}

/* The store itself sees it first, and writes nothing. */
static void test_overwritten_used(void **state)
{
	uint64_t at, first;
	struct region *r = opened_with_session(&first);

	write_store(128);
	assert_int_equal(held_store_take(r->store, BYTES, &at), -EIO);
	assert_true(region_is_bad(r, NULL));
	expect_another(r, first);
}

/* or a look at the file has; another region has the same store */
static void test_overwritten_seen(void **state)
{
	uint64_t at;
	struct region *r = opened_with_session(&at), *other = opened(NULL);
	struct region_look look;

	write_store(128);
	assert_int_equal(region_look_begin(&look, other), 0);
	region_look(&look);
	region_looked(other, &look);
	assert_true(region_is_bad(other, NULL));
	assert_true(region_is_bad(r, NULL));
	assert_int_equal(held_store_take(r->store, BYTES, &(uint64_t){0}), -EIO);
	region_close(other);
	expect_another(r, at);
}

static void set_header(uint32_t header)
{
	CLEANUP(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC);
	const off_t at = offsetof(struct reddn_table_header, header);

	assert_int_equal(pwrite(fd, &header, sizeof(header), at), sizeof(header));
}

static void test_kinds(void **state)
{
	conf.store = false;
	region_close(opened("it is a store; kind = \"store\""));
	set_header(0);
	region_close(opened(NULL));
	conf.store = true;
	region_close(opened("it is a table, and no store; kind = \"table\""));
}

static int locked_file(void)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = REDDN_TABLE_LOCK_WRITER, .l_len = 1};
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	close(fd);
	return -1;
}

/* A daemon before this one has left the lock, and instances that are armed */
static void test_what_was_left(void **state)
{
	struct store_held left = {64, BYTES};
	struct held_store_inherited lock;
	struct region *r = opened(NULL);
	int fd;
	struct stat st;

	first_grace(r->store);
	assert_int_equal(held_store_take(r->store, BYTES, &left.at), 0);
	region_close(r);
	fd = locked_file();
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	region_close(opened("another program writes it"));
	lock = (struct held_store_inherited){.fd = fd, .number = 3};
	held_store_inherit_locks(&lock, 1);
	assert_int_equal(held_store_expect(st.st_dev, st.st_ino + 1, &left, 1), 0);
	assert_int_equal(held_store_expect(st.st_dev, st.st_ino, &left, 1), 0);
	r = opened(NULL);
	assert_true(lock.fd == -1 && lock.used);
	assert_int_equal(held_store_lock_number(r->store), 3);
	assert_int_equal(held(r->store), 1);
	assert_int_equal(locked_file(), -1);
	region_close(r);
	/* Two sessions cannot have one extent */
	assert_int_equal(held_store_expect(st.st_dev, st.st_ino, &left, 1), 0);
	region_close(opened("extents that there cannot be"));
	held_store_expect_none();
	held_store_inherit_locks(NULL, 0);
	r = opened(NULL);
	assert_int_equal(held(r->store), 0);
	assert_int_equal(held_store_lock_number(r->store), 0);
	region_close(r);
}

/* Two of one store that was given up, and of the one that took its place; and a copy */
static void test_several_locks(void **state)
{
	struct held_store_inherited locks[] = {{.fd = open(path, O_RDWR), .number = 1},
		{.fd = locked_file(), .number = 2}, {.number = 3}, {.fd = open("/dev/null", O_RDWR)}};
	struct region *r;

	locks[2].fd = dup(locks[1].fd);
	held_store_inherit_locks(locks, 4);
	r = opened(NULL);
	assert_int_equal(held_store_lock_number(r->store), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_true(locks[i].fd == -1 && locks[i].used == (i == 1));
	assert_true(locks[3].fd >= 0 && !locks[3].used);
	assert_int_equal(locked_file(), -1);
	held_store_inherit_locks(NULL, 0);
	close(locks[3].fd);
	region_close(r);
	r = opened(NULL);
	region_close(r);
}

/* Sessions may publish in it, until they have ended */
static void test_a_lock_of_a_store_that_cannot_be_opened(void **state)
{
	struct held_store_inherited lock = {.fd = locked_file(), .number = 1};
	struct store_held none = {1, BYTES};
	struct stat st;

	assert_int_equal(fstat(lock.fd, &st), 0);
	held_store_inherit_locks(&lock, 1);
	assert_int_equal(held_store_expect(st.st_dev, st.st_ino, &none, 1), 0);
	region_close(opened("extents that there cannot be"));
	held_store_expect_none();
	held_store_inherit_locks(NULL, 0);
	assert_true(lock.fd >= 0 && !lock.used);
	assert_int_equal(locked_file(), -1);
	close(lock.fd);
	region_close(opened(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* the first one: cmocka takes SIGBUS for itself before each test, the guard only once */
		cmocka_unit_test_setup_teardown(test_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten_older, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwritten_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_raw, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_writer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_was_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_lock_of_a_store_that_cannot_be_opened, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
