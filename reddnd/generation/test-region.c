/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that owners hand over: how large they may be, and that all that gets pinned is allocated. */
#include "reddnd/generation/region.h"

#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { SIZE = 1 << 20 };

static char no_path[] = "handover:r", where[] = "test:1";
static const struct catalog_region handed = {
	.name = "r", .path = no_path, .where = where, .raw = true, .handover = true, .size_max = SIZE};

static int file_of(uint64_t size, uint64_t from, uint64_t allocated)
{
	int fd = memfd_create("region", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (allocated)
		assert_int_equal(fallocate(fd, 0, (off_t)from, (off_t)allocated), 0);
	return fd;
}

static struct region *opened(const struct catalog_region *conf, int fd)
{
	struct region *r;

	assert_int_equal(region_open(&r, conf, 0, fd), 0);
	return r;
}

static void expect(const struct region *r, const char *words)
{
	char why[REGION_WHY];

	assert_int_equal(region_is_bad(r, why), words != NULL);
	if (words && !strstr(why, words))
		fail_msg("no \"%s\" in \"%s\"", words, why);
}

/* A file of which @allocated bytes from @from on have memory; @words: NULL, or those of the refusal */
static void try_file(const struct catalog_region *conf, uint64_t size, uint64_t from, uint64_t allocated,
	const char *words)
{
	CLEANUP(cleanup_close) int fd = file_of(size, from, allocated);
	struct region *r = opened(conf, fd);

	expect(r, words);
	region_close(r);
}

static void test_size(void **state)
{
	try_file(&handed, SIZE, 0, SIZE, NULL);
	try_file(&handed, SIZE + 1, 0, SIZE + 1, "\"size_max\" of the region is 1048576");
	try_file(&handed, 900ull << 30, 0, 0, "\"size_max\" of the region is 1048576");
}

static void test_holes(void **state)
{
	struct catalog_region part = handed;

	try_file(&handed, SIZE, 0, 0, "0 of the 1048576 bytes");
	try_file(&handed, SIZE, 0, SIZE / 2, "524288 of the 1048576 bytes that the NIC reads are allocated");
	/* less than a page */
	try_file(&handed, 10, 0, 10, NULL);
	try_file(&handed, 10, 0, 0, "0 of the 10 bytes");
	/* what the NIC does not read needs no memory */
	part.offset = SIZE / 2;
	part.length = SIZE / 4;
	try_file(&part, SIZE, SIZE / 2, SIZE / 4, NULL);
	try_file(&part, SIZE, SIZE / 2, SIZE / 8, "131072 of the 262144 bytes");
}

/* Registering fills the holes of a file that the operator has named: that is his decision */
static void test_path(void **state)
{
	char path[] = "/dev/shm/test-region-XXXXXX";
	CLEANUP(cleanup_close) int fd = mkstemp(path);
	struct catalog_region conf = {.name = "r", .path = path, .where = where, .raw = true};
	struct region *r;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * SIZE), 0);
	r = opened(&conf, -1);
	unlink(path);
	expect(r, NULL);
	region_close(r);
}

static void test_punched(void **state)
{
	CLEANUP(cleanup_close) int fd = file_of(SIZE, 0, SIZE);
	struct region *r = opened(&handed, fd);
	struct region_look look;

	assert_int_equal(region_look_begin(&look, r), 0);
	region_look(&look);
	region_looked(r, &look);
	expect(r, NULL);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE / 4), 0);
	assert_int_equal(region_look_begin(&look, r), 0);
	region_look(&look);
	region_looked(r, &look);
	expect(r, "has holes");
	region_close(r);
}

/* That another table has replaced it is seen without a look at the file, on a disk as in memory. Tests run in
 * the directory of the build, which is on a disk as a rule. */
static void try_retired(char *path, bool store)
{
	CLEANUP(cleanup_close) int fd = mkstemp(path);
	struct catalog_region conf = {.name = "r", .path = path, .where = where, .store = store};
	struct reddn_table_header h = {.magic = REDDN_TABLE_MAGIC,
		.version = REDDN_TABLE_VERSION,
		.header_size = sizeof(h),
		.buckets = 256,
		.buckets_off = 4096,
		.heap_off = 8192,
		.heap_size = 4096,
		.file_size = 12288,
		.max_key = 16,
		.max_value = 16,
		.live = {.epoch = 1}};
	uint8_t file[12288] = {0};
	struct region_look look;
	struct region *r;
	char other[64];

	if (store) {
		h.header = 15;
		h.chunk = 4096;
		h.null_off = 32;
	}

	assert_true(fd >= 0);
	memcpy(file, &h, sizeof(h));
	assert_int_equal(pwrite(fd, file, sizeof(file), 0), sizeof(file));
	r = opened(&conf, -1);
	region_open_store(r);
	snprintf(other, sizeof(other), "%s.new", path);
	assert_int_equal(close(open(other, O_RDWR | O_CREAT | O_EXCL, 0600)), 0);
	expect(r, NULL);
	assert_false(region_is_retired(r));
	h.live.epoch = 0; /* and no more of the file, in which a store is noted as opened */
	assert_int_equal(pwrite(fd, &h.live, sizeof(h.live), offsetof(struct reddn_table_header, live)),
		sizeof(h.live));
	assert_true(region_is_retired(r));
	/* Sessions that put in it do not learn that from it, and are ended: another file has its name */
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(region_look_begin(&look, r), 0);
	region_look(&look);
	region_looked(r, &look);
	assert_int_equal(r->replaced, store);
	assert_int_equal(unlink(path), 0);
	region_close(r);
}

static void test_retired(void **state)
{
	char on_disk[] = "test-region-XXXXXX", in_memory[] = "/dev/shm/test-region-XXXXXX",
	     of_store[] = "/dev/shm/test-region-XXXXXX";

	try_retired(on_disk, false);
	try_retired(in_memory, false);
	try_retired(of_store, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_punched),
		cmocka_unit_test(test_retired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
