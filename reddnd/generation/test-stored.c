/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of what is stored in files, as the next daemon finds it. */
#include "reddnd/generation/stored.h"

#include "util/array.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { FILES = 8, HEAD = 24 /* at most: in front of any list */, ROOM = 1 << 16 };

static void fill(struct stored_file *files, unsigned n, uint64_t first)
{
	for (unsigned i = 0; i < n; i++)
		files[i] = (struct stored_file){
			.id = {1, first + i, 7}, .stored = {.any = {i, i + 8}, .theirs = {i, i + 4}}};
}

static size_t read_all(int fd, uint8_t bytes[ROOM])
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size <= ROOM);
	assert_int_equal(pread(fd, bytes, ROOM, 0), st.st_size);
	return (size_t)st.st_size;
}

static void expect(int fd, const struct stored *s)
{
	struct stored loaded;

	assert_int_equal(stored_load(&loaded, fd), 0);
	assert_int_equal(loaded.n, s->n);
	if (s->n)
		assert_memory_equal(loaded.files, s->files, s->n * sizeof(*s->files));
	stored_free(&loaded);
}

/* Saves @next over @fd, which has @now; then the same, stopped in front of the head after each byte */
static void interrupt(int fd, const struct stored *now, const struct stored *next)
{
	static uint8_t before[ROOM], after[ROOM];
	CLEANUP(cleanup_close) int torn = memfd_create("torn", MFD_CLOEXEC);
	size_t was = read_all(fd, before), is;

	assert_true(torn >= 0);
	assert_int_equal(stored_save(next, fd), 0);
	expect(fd, next);
	is = read_all(fd, after);
	for (size_t n = HEAD; n <= is; n++) {
		assert_int_equal(ftruncate(torn, 0), 0);
		assert_int_equal(pwrite(torn, after, n, 0), n);
		if (was > n)
			assert_int_equal(pwrite(torn, before + n, was - n, (off_t)n), was - n);
		assert_int_equal(pwrite(torn, before, HEAD, 0), HEAD);
		expect(torn, now);
	}
}

static void test_interrupted(void **state)
{
	static const unsigned lengths[] = {3, 3, 8, 1, 8, 0, 5, 4, 8, 8, 2};
	struct stored_file a[FILES], b[FILES];
	struct stored now = {.files = a, .n = 2};
	CLEANUP(cleanup_close) int fd = memfd_create("stored", MFD_CLOEXEC);

	assert_true(fd >= 0);
	fill(a, now.n, 100);
	assert_int_equal(stored_save(&now, fd), 0);
	for (unsigned i = 0; i < COUNT(lengths); i++) {
		struct stored next = {.files = now.files == a ? b : a, .n = lengths[i]};

		fill(next.files, next.n, i);
		interrupt(fd, &now, &next);
		now = next;
	}
}

static void test_unknown(void **state)
{
	CLEANUP(cleanup_close) int fd = memfd_create("stored", MFD_CLOEXEC);
	struct stored s;

	assert_int_equal(stored_load(&s, fd), -EBADMSG);
	assert_int_equal(ftruncate(fd, ROOM), 0);
	assert_int_equal(stored_load(&s, fd), -EBADMSG);
}

static bool has_more(const struct chain_stored *now, const struct chain_stored *before, uint64_t ino,
	uint64_t off, uint64_t size)
{
	struct stored_file f = {.id = {1, 2, 3}, .stored = *now}, g = {.id = {1, 2, 3}};
	const struct stored s = {.files = &f, .n = 1}, was = {.files = &g, .n = before != NULL};

	if (before)
		g.stored = *before;
	return stored_has_more(&s, &was, &(struct stored_place){1, ino, off, size});
}

static void test_more(void **state)
{
	const struct chain_stored small = {.any = {16, 24}, .theirs = {16, 20}};
	const struct chain_stored wide = {.any = {16, 32}, .theirs = {16, 20}};
	const struct chain_stored theirs = {.any = {16, 24}, .theirs = {16, 24}};

	assert_true(has_more(&small, NULL, 2, 0, 64));
	assert_false(has_more(&small, &small, 2, 0, 64));
	assert_false(has_more(&small, &wide, 2, 0, 64));
	assert_true(has_more(&wide, &small, 2, 0, 64));
	assert_true(has_more(&theirs, &small, 2, 0, 64));
	/* another file; another part of the file */
	assert_false(has_more(&small, NULL, 3, 0, 64));
	assert_false(has_more(&small, NULL, 2, 0, 16));
	assert_false(has_more(&small, NULL, 2, 24, 16));
	assert_true(has_more(&small, NULL, 2, 23, 1));
	assert_false(has_more(&(struct chain_stored){0}, NULL, 2, 0, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
