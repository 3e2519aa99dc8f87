/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { PAGE = 4096 };

static void test_fit(void **state)
{
	struct rnic_arena *arena;
	uint64_t a, b, c, d;

	assert_int_equal(rnic_arena_new(&arena, 8 * PAGE), 0);
	assert_int_equal(rnic_arena_alloc(arena, 1, &a), 0);
	assert_int_equal(rnic_arena_alloc(arena, 2 * PAGE, &b), 0);
	assert_int_equal(rnic_arena_alloc(arena, 4 * PAGE + 1, &c), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, PAGE);
	assert_int_equal(c, 3 * PAGE);
	assert_int_equal(rnic_arena_used(arena), 8 * PAGE);
	assert_int_equal(rnic_arena_alloc(arena, 1, &d), -ENOSPC);
	rnic_arena_release(arena, b);
	assert_int_equal(rnic_arena_alloc(arena, 3 * PAGE, &d), -ENOSPC);
	assert_int_equal(rnic_arena_alloc(arena, PAGE, &d), 0);
	assert_int_equal(d, PAGE);
	rnic_arena_release(arena, a);
	assert_int_equal(rnic_arena_alloc(arena, PAGE, &a), 0);
	assert_int_equal(a, 0);
	rnic_arena_release(arena, c);
	assert_int_equal(rnic_arena_alloc(arena, 6 * PAGE, &c), 0);
	assert_int_equal(c, 2 * PAGE);
	rnic_arena_free(arena);
}

/* Extents of many sizes, taken and given back in any order: none overlaps another, and the holes become one
 * again */
static void test_many(void **state)
{
	enum { N = 500, PAGES = 4096 };
	static struct {
		uint64_t at, pages;
	} have[N];
	static uint8_t owner[PAGES];
	struct rnic_arena *arena;
	uint64_t all, used = 0;
	unsigned rng = 1;

	assert_int_equal(rnic_arena_new(&arena, (uint64_t)PAGES * PAGE), 0);
	for (unsigned step = 0; step < 40 * N; step++) {
		unsigned i;
		uint64_t pages;
		int r;

		rng = rng * 1103515245 + 12345;
		i = (rng >> 16) % N;
		if (have[i].pages) {
			rnic_arena_release(arena, have[i].at);
			memset(owner + have[i].at / PAGE, 0, have[i].pages);
			used -= have[i].pages;
			have[i].pages = 0;
			continue;
		}
		pages = 1 + (rng >> 8) % 16;
		r = rnic_arena_alloc(arena, pages * PAGE, &have[i].at);
		if (r) {
			assert_int_equal(r, -ENOSPC);
			continue;
		}
		have[i].pages = pages;
		used += pages;
		for (uint64_t p = 0; p < pages; p++) {
			assert_int_equal(owner[have[i].at / PAGE + p], 0);
			owner[have[i].at / PAGE + p] = 1;
		}
		assert_int_equal(rnic_arena_used(arena), used * PAGE);
	}
	for (unsigned i = 0; i < N; i++)
		if (have[i].pages)
			rnic_arena_release(arena, have[i].at);
	assert_int_equal(rnic_arena_used(arena), 0);
	assert_int_equal(rnic_arena_alloc(arena, (uint64_t)PAGES * PAGE, &all), 0);
	assert_int_equal(all, 0);
	rnic_arena_free(arena);
}

static uint64_t memory_of(const struct rnic_arena *arena)
{
	struct stat st;

	assert_int_equal(fstat(rnic_arena_fd(arena), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Some stays for the next extents, and all that there is of it goes when it is too much */
static void test_memory_returns(void **state)
{
	enum { MEBIBYTE = 1 << 20, EXTENTS = 3 * ARENA_KEPT / MEBIBYTE };
	struct rnic_arena *arena;
	uint64_t at[EXTENTS];

	assert_int_equal(rnic_arena_new(&arena, EXTENTS * MEBIBYTE), 0);
	assert_int_equal(memory_of(arena), 0);
	for (unsigned i = 0; i < EXTENTS; i++) {
		assert_int_equal(rnic_arena_alloc(arena, MEBIBYTE, &at[i]), 0);
		memset(rnic_arena_at(arena, at[i]), 0x5a, MEBIBYTE);
	}
	assert_int_equal(memory_of(arena), EXTENTS * MEBIBYTE);
	/* every second one, so that holes have neighbours that are in use */
	for (unsigned i = 0; i < EXTENTS; i += 2) {
		rnic_arena_release(arena, at[i]);
		assert_true(memory_of(arena) <= rnic_arena_used(arena) + ARENA_KEPT);
	}
	for (unsigned i = 1; i < EXTENTS; i += 2)
		for (unsigned k = 0; k < MEBIBYTE; k += 512)
			assert_int_equal(rnic_arena_at(arena, at[i])[k], 0x5a);
	for (unsigned i = 1; i < EXTENTS; i += 2)
		rnic_arena_release(arena, at[i]);
	assert_int_equal(rnic_arena_used(arena), 0);
	assert_true(memory_of(arena) <= ARENA_KEPT);
	assert_int_equal(rnic_arena_alloc(arena, EXTENTS * MEBIBYTE, &at[0]), 0);
	for (unsigned k = 0; k < EXTENTS * MEBIBYTE; k++)
		assert_int_equal(rnic_arena_at(arena, at[0])[k], 0);
	rnic_arena_free(arena);
}

static void test_sealed(void **state)
{
	struct rnic_arena *arena;

	assert_int_equal(rnic_arena_new(&arena, 4 * PAGE), 0);
	assert_int_equal(ftruncate(rnic_arena_fd(arena), PAGE), -1);
	assert_int_equal(ftruncate(rnic_arena_fd(arena), 8 * PAGE), -1);
	assert_int_equal(rnic_arena_size(arena), 4 * PAGE);
	rnic_arena_free(arena);
}

/* The next daemon has the extents that it names, with what is in them; the rest is free, and zero. */
static void test_open(void **state)
{
	const struct ledger_block used[] = {{3 * PAGE, 2 * PAGE}, {0, PAGE}};
	struct rnic_arena *first, *second;
	uint64_t a;

	assert_int_equal(rnic_arena_new(&first, 8 * PAGE), 0);
	memset(rnic_arena_at(first, 0), 0x5a, 8 * PAGE);
	assert_int_equal(rnic_arena_open(&second, dup(rnic_arena_fd(first)), 8 * PAGE, used, 2), 0);
	rnic_arena_free(first);
	assert_int_equal(rnic_arena_used(second), 3 * PAGE);
	for (unsigned page = 0; page < 8; page++)
		assert_int_equal(rnic_arena_at(second, page * PAGE)[17],
			page == 0 || page == 3 || page == 4 ? 0x5a : 0);
	assert_int_equal(rnic_arena_alloc(second, 4 * PAGE, &a), -ENOSPC);
	assert_int_equal(rnic_arena_alloc(second, 3 * PAGE, &a), 0);
	assert_int_equal(a, 5 * PAGE);
	assert_int_equal(rnic_arena_alloc(second, 2 * PAGE, &a), 0);
	assert_int_equal(a, PAGE);
	rnic_arena_release(second, 3 * PAGE);
	rnic_arena_release(second, 0);
	rnic_arena_release(second, PAGE);
	assert_int_equal(rnic_arena_alloc(second, 5 * PAGE, &a), 0);
	rnic_arena_free(second);
}

static void test_not_an_arena(void **state)
{
	static const struct ledger_block wrong[][2] = {{{0, 2 * PAGE}, {PAGE, PAGE}},
		{{0, PAGE}, {8 * PAGE, PAGE}}, {{0, PAGE}, {7 * PAGE, 2 * PAGE}},
		{{0, PAGE}, {PAGE + 64, PAGE}}, {{0, PAGE}, {4 * PAGE, UINT64_MAX - PAGE}}};
	struct rnic_arena *arena, *other;
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(rnic_arena_new(&arena, 8 * PAGE), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(
			rnic_arena_open(&other, rnic_arena_fd(arena), 8 * PAGE, wrong[i], 2), -EBADMSG);
	assert_int_equal(rnic_arena_open(&other, rnic_arena_fd(arena), 4 * PAGE, NULL, 0), -EBADMSG);
	assert_int_equal(ftruncate(fd, 8 * PAGE), 0);
	assert_int_equal(rnic_arena_open(&other, fd, 8 * PAGE, NULL, 0), -EBADMSG);
	close(fd);
	rnic_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_memory_returns),
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_not_an_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
