/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of cache files: new ones, those that are there, those of others. */
#include "memcached/cache-file.h"

#include "memcached/cache-layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

static char dir[64], path[96], why[300];
static struct reddn_cache_header small, large;

static int make(void **state)
{
	snprintf(dir, sizeof(dir), "/dev/shm/test-cache-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/cache", dir);
	/* of no memcached: as small as can be */
	cache_layout_make(&small, 1 << 20, 12);
	small.pages_size = REDDN_CACHE_PAGE;
	small.file_size = small.pages_off + REDDN_CACHE_PAGE + REDDN_CACHE_PADDING;
	large = small;
	large.pages_size += REDDN_CACHE_PAGE;
	large.file_size += REDDN_CACHE_PAGE;
	return 0;
}

static int unmake(void **state)
{
	unlink(path);
	return rmdir(dir); /* nothing else is left there */
}

static int cache(const struct reddn_cache_header *want)
{
	*why = 0;
	return cache_file_open(path, want, why, sizeof(why));
}

static struct stat stat_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st;
}

static void test_new(void **state)
{
	struct reddn_cache_header h;
	mode_t mask = umask(0777);
	int fd = cache(&small);
	struct stat st;

	umask(mask);
	assert_true(fd >= 0);
	st = stat_of(fd);
	assert_int_equal(st.st_size, small.file_size);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_true((uint64_t)st.st_blocks * 512 >= small.file_size);
	assert_int_equal(pread(fd, &h, sizeof(h), REDDN_CACHE_NULL), sizeof(h));
	assert_memory_equal(&h, &small, sizeof(h));
	close(fd);
}

/* What a NIC has pinned goes on to be what memcached uses */
static void test_same_layout_is_kept(void **state)
{
	int fd = cache(&small);
	ino_t inode = stat_of(fd).st_ino;
	uint64_t word = 4711;

	assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)small.pages_off), sizeof(word));
	close(fd);
	fd = cache(&small);
	assert_int_equal(stat_of(fd).st_ino, inode);
	word = 0;
	assert_int_equal(pread(fd, &word, sizeof(word), (off_t)small.pages_off), sizeof(word));
	assert_int_equal(word, 4711);
	close(fd);
}

static void test_another_layout_replaces(void **state)
{
	int fd = cache(&small), served, now;
	struct stat st = stat_of(fd);

	served = open(path, O_RDONLY);
	close(fd);
	now = cache(&large);
	assert_int_not_equal(stat_of(now).st_ino, st.st_ino);
	assert_int_equal(stat_of(now).st_size, large.file_size);
	assert_int_equal(stat_of(served).st_size, small.file_size);
	close(now);
	close(served);
	/* and back */
	fd = cache(&small);
	assert_int_equal(stat_of(fd).st_size, small.file_size);
	close(fd);
}

static void test_cut_file_is_replaced(void **state)
{
	int fd = cache(&small);
	ino_t inode = stat_of(fd).st_ino;

	assert_int_equal(ftruncate(fd, (off_t)small.file_size - 4096), 0);
	close(fd);
	fd = cache(&small);
	assert_int_not_equal(stat_of(fd).st_ino, inode);
	assert_int_equal(stat_of(fd).st_size, small.file_size);
	close(fd);
}

static void test_lock(void **state)
{
	int fd = cache(&small);
	struct stat st = stat_of(fd);

	assert_int_equal(cache(&small), -EBUSY);
	assert_non_null(strstr(why, "is locked: by another memcached"));
	assert_int_equal(cache(&large), -EBUSY);
	assert_int_equal(stat_of(fd).st_size, st.st_size);
	close(fd);
	/* the lock goes with the file that replaces another */
	fd = cache(&large);
	assert_int_equal(cache(&large), -EBUSY);
	close(fd);
}

static void refused(int error, const char *words)
{
	assert_int_equal(cache(&small), error);
	assert_non_null(strstr(why, words));
	assert_ptr_equal(strstr(why, path), why);
}

static void test_refused(void **state)
{
	char target[128];
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(write(fd, "x", 1), 1);
	refused(-EINVAL, "is no cache file");
	assert_int_equal(stat_of(fd).st_size, 1);
	close(fd);
	unlink(path);
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, path), 0);
	refused(-ELOOP, "a symbolic link");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EISDIR, "cannot be opened");
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(-EINVAL, "no regular file");
}

/* A full file system is an error now, not a SIGBUS later */
static void test_no_memory(void **state)
{
	struct reddn_cache_header huge = small;

	huge.file_size = 1ull << 46;
	assert_int_equal(cache(&huge), -ENOSPC);
	assert_non_null(strstr(why, "no memory for the"));
	assert_non_null(strstr(why, path));
	/* what was begun is gone, and so is what was left before it */
	close(open(strcat(strcpy(why, path), ".new"), O_CREAT | O_RDWR, 0600));
	close(cache(&small));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new, make, unmake),
		cmocka_unit_test_setup_teardown(test_same_layout_is_kept, make, unmake),
		cmocka_unit_test_setup_teardown(test_another_layout_replaces, make, unmake),
		cmocka_unit_test_setup_teardown(test_cut_file_is_replaced, make, unmake),
		cmocka_unit_test_setup_teardown(test_lock, make, unmake),
		cmocka_unit_test_setup_teardown(test_refused, make, unmake),
		cmocka_unit_test_setup_teardown(test_no_memory, make, unmake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
