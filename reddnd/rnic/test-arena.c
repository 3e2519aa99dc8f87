/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096 };

static void test_fit(void **state)
{
	struct rnic_arena *arena;
	uint64_t a, b, c, d;

	(void)state;
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

static void test_memory_returns(void **state)
{
	struct rnic_arena *arena;
	struct stat before, full, after;
	uint64_t a;

	(void)state;
	assert_int_equal(rnic_arena_new(&arena, 1 << 20), 0);
	fstat(rnic_arena_fd(arena), &before);
	assert_int_equal(rnic_arena_alloc(arena, 1 << 20, &a), 0);
	memset(rnic_arena_at(arena, a), 0x5a, 1 << 20);
	fstat(rnic_arena_fd(arena), &full);
	rnic_arena_release(arena, a);
	fstat(rnic_arena_fd(arena), &after);
	assert_int_equal(before.st_blocks, 0);
	assert_true(full.st_blocks >= 2048);
	assert_int_equal(after.st_blocks, 0);
	assert_int_equal(rnic_arena_alloc(arena, PAGE, &a), 0);
	assert_int_equal(rnic_arena_at(arena, a)[17], 0);
	rnic_arena_free(arena);
}

static void test_sealed(void **state)
{
	struct rnic_arena *arena;

	(void)state;
	assert_int_equal(rnic_arena_new(&arena, 4 * PAGE), 0);
	assert_int_equal(ftruncate(rnic_arena_fd(arena), PAGE), -1);
	assert_int_equal(ftruncate(rnic_arena_fd(arena), 8 * PAGE), -1);
	assert_int_equal(rnic_arena_size(arena), 4 * PAGE);
	rnic_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_memory_returns),
		cmocka_unit_test(test_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
