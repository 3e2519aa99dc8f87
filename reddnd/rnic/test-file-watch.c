/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/file-watch.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { PAGE = 4096, SIZE = 16 * PAGE };

struct file {
	char path[32];
	int fd;
};

static struct file make_file(void)
{
	struct file f = {.path = "/dev/shm/test-watch-XXXXXX"};

	f.fd = mkstemp(f.path);
	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, SIZE), 0);
	return f;
}

static void remove_file(const struct file *f)
{
	unlink(f->path);
	close(f->fd);
}

static void cut(int fd)
{
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
}

static void make_hole(int fd)
{
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE), 0);
}

static void remove_pages(int fd)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_int_equal(madvise(p, PAGE, MADV_REMOVE), 0);
	munmap(p, SIZE);
}

static void store(int fd)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	for (size_t i = 0; i < SIZE; i += PAGE)
		p[i]++;
	msync(p, SIZE, MS_SYNC);
	munmap(p, SIZE);
}

static void test_pages(void **state)
{
	static void (*const changes[])(int fd) = {cut, make_hole, remove_pages};
	int watches = file_watch_new();

	assert_true(watches >= 0);
	for (unsigned i = 0; i < 3; i++) {
		struct file a = make_file(), b = make_file();
		uint32_t first = file_watch_add(watches, a.fd), of_b = file_watch_add(watches, b.fd), again;

		assert_int_not_equal(first, 0);
		assert_int_not_equal(first, of_b);
		store(a.fd);
		assert_true(file_watch_holds(watches, first));
		assert_int_equal(file_watch_add(watches, a.fd), first);
		changes[i](a.fd);
		assert_false(file_watch_holds(watches, first));
		assert_true(file_watch_holds(watches, of_b));
		again = file_watch_add(watches, a.fd);
		assert_int_not_equal(again, first);
		assert_true(file_watch_holds(watches, again));
		assert_false(file_watch_holds(watches, first));
		remove_file(&a);
		remove_file(&b);
	}
	assert_false(file_watch_holds(watches, 0));
	close(watches);
}

/* It sees what happens while another descriptor has it */
static void test_outlives(void **state)
{
	struct file a = make_file(), b = make_file();
	int watches = file_watch_new(), kept;
	uint32_t of_a = file_watch_add(watches, a.fd), of_b = file_watch_add(watches, b.fd);

	kept = dup(watches);
	close(watches);
	cut(a.fd);
	assert_false(file_watch_holds(kept, of_a));
	assert_true(file_watch_holds(kept, of_b));
	close(kept);
	remove_file(&a);
	remove_file(&b);
}

static void test_nothing(void **state)
{
	struct file a = make_file();
	int watches = file_watch_new(), unnamed = memfd_create("unnamed", MFD_CLOEXEC);

	assert_int_equal(file_watch_add(-1, a.fd), 0);
	assert_int_equal(file_watch_add(a.fd, a.fd), 0);
	assert_int_equal(file_watch_add(watches, unnamed), 0);
	assert_false(file_watch_holds(-1, 1));
	assert_false(file_watch_holds(a.fd, 1));
	close(unnamed);
	close(watches);
	remove_file(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_outlives),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
