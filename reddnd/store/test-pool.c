/* SPDX-License-Identifier: BSD-2-Clause */
/* Extents: places without the tag, chunks that change their size, rest and graces, and how much is lost. */
#include "reddnd/store/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { MB = 1 << 20, LIVE = 40000 };

static uint64_t seed = 1;

static unsigned pick(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static uint8_t *heap_of(uint64_t size)
{
	uint8_t *heap = aligned_alloc(REDDN_TABLE_PAGE, size);

	assert_non_null(heap);
	memset(heap, 0, size);
	return heap;
}

/* Takes all extents of a size that there are. */
static unsigned take_all(struct pool *p, uint32_t bytes, uint64_t *at)
{
	unsigned n = 0;

	while (pool_take(p, bytes, &at[n]) == 0) {
		assert_int_equal(at[n] % 64, 0);
		assert_int_equal(at[n], reddn_untagged(at[n]));
		assert_true(at[n] % p->chunk + bytes <= p->chunk && at[n] % p->chunk >= 64);
		assert_true(++n < LIVE);
	}
	return n;
}

/* All of a heap has any size in turn, but for a line of each chunk, the rest at its end and tagged places. */
static void test_capacity(void **state)
{
	static const uint32_t sizes[] = {1, 64, 65, 1000, 4096, 20000, 65536 - 64};
	static uint64_t at[LIVE];
	uint8_t *heap = heap_of(2 * MB);
	struct pool p;

	assert_int_equal(pool_init(&p, heap, 2 * MB, 65536), 0);
	pool_claimed(&p);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t size = (sizes[i] + 63) / 64 * 64;
		unsigned n = take_all(&p, sizes[i], at), places = 0;

		for (uint64_t c = 0; c < 32; c++)
			for (uint64_t o = c * 65536 + 64; o + size <= (c + 1) * 65536; o += size)
				places += o == reddn_untagged(o);
		assert_int_equal(n, places);
		print_message("%u extents of %u bytes in 2 MB: %.1f %% lost\n", n, sizes[i],
			100.0 - 100.0 * n * sizes[i] / (2 * MB));
		while (n > 0)
			pool_give(&p, at[--n]);
	}
	assert_int_equal(pool_take(&p, 65536 - 63, at), -EINVAL);
	assert_int_equal(pool_take(&p, 0, at), -EINVAL);
	pool_deinit(&p);
	free(heap);
}

/* A chunk whose place has the tag in a higher byte has no extents. */
static void test_tagged_chunk(void **state)
{
	static uint64_t at[LIVE];
	uint64_t size = (uint64_t)(REDDN_TABLE_TAG + 3) << 16;
	uint8_t *heap = aligned_alloc(REDDN_TABLE_PAGE, size); /* hardly touched */
	struct pool p;
	unsigned n;

	assert_int_equal(pool_init(&p, heap, size, 65536), 0);
	pool_claimed(&p);
	n = take_all(&p, 30000, at);
	assert_int_equal(n, 2 * (REDDN_TABLE_TAG + 2));
	pool_deinit(&p);
	free(heap);
}

/* What rests is free after a grace that began later, and no other. */
static void test_rest(void **state)
{
	uint8_t *heap = heap_of(65536);
	uint64_t a, b, c;
	struct pool p;

	assert_int_equal(pool_init(&p, heap, 65536, 65536), 0);
	pool_claimed(&p);
	assert_int_equal(pool_take(&p, 20000, &a), 0);
	assert_int_equal(pool_take(&p, 20000, &b), 0);
	assert_int_equal(pool_take(&p, 20000, &c), 0);
	assert_int_equal(pool_take(&p, 20000, &c), -ENOSPC);
	assert_int_equal(pool_publish(&p, a, 0), 1);
	assert_int_equal(pool_publish(&p, a, 0), -EINVAL);
	pool_grace_begins(&p);
	assert_int_equal(pool_retire(&p, a), 1);
	assert_int_equal(pool_retire(&p, a), -EINVAL);
	/* Reported in the wrong order */
	assert_true(pool_is_unnamed(&p, b));
	assert_int_equal(pool_retire(&p, b), 0);
	assert_false(pool_is_unnamed(&p, b));
	assert_int_equal(pool_publish(&p, b, 0), 0);
	assert_false(pool_is_unnamed(&p, b));
	assert_true(pool_wants_grace(&p));
	assert_false(pool_grace_over(&p));
	assert_int_equal(pool_take(&p, 20000, &c), -ENOSPC);
	pool_grace_begins(&p);
	assert_int_equal(pool_take(&p, 20000, &c), -ENOSPC);
	assert_true(pool_grace_over(&p));
	assert_int_equal(pool_take(&p, 20000, &c), 0);
	assert_int_equal(pool_take(&p, 20000, &c), 0);
	/* What is no extent does not rest: the null extent, for one */
	assert_int_equal(pool_retire(&p, 32), 0);
	pool_deinit(&p);
	free(heap);
}

/* A take fails only if all extents of the size are in use, and in each chunk of another size one is. */
static void check_failure(const struct pool *p, uint32_t size)
{
	assert_int_equal(p->nunassigned, 0);
	for (unsigned i = 0; i < STORE_CLASSES; i++) {
		assert_int_equal(p->class[i].idle, 0);
		if (p->class[i].bytes == size)
			assert_int_equal(p->class[i].free, 0);
	}
}

/* Sizes come and go. No extent overlaps another; the numbers are right. */
static void test_churn(void **state)
{
	static const uint32_t sizes[] = {128, 1088, 4160, 16448, 448};
	static struct {
		uint64_t at;
		uint32_t size;
	} live[LIVE];
	uint8_t *heap = heap_of(4 * MB), *owner = calloc(4 * MB / 64, 1);
	unsigned n = 0, failed = 0, most = 0;
	struct pool p;

	assert_int_equal(pool_init(&p, heap, 4 * MB, 65536), 0);
	pool_claimed(&p);
	for (unsigned step = 0; step < 400000; step++) {
		unsigned phase = step / 50000 % 2;
		uint32_t size = sizes[(step / 25000 + pick(2)) % 5];
		uint64_t at;

		if (n && pick(100) < (phase ? 60 : 45)) {
			unsigned i = pick(n);

			assert_int_equal(pool_publish(&p, live[i].at, 0), 1);
			assert_int_equal(pool_retire(&p, live[i].at), 1);
			memset(owner + live[i].at / 64, 0, live[i].size / 64);
			live[i] = live[--n];
		} else if (pool_take(&p, size, &at) == 0) {
			for (uint64_t l = at / 64; l < (at + size) / 64; l++)
				assert_int_equal(owner[l]++, 0);
			live[n].at = at;
			live[n++].size = size;
			assert_true(n < LIVE);
		} else {
			check_failure(&p, size);
			failed++;
		}
		if (step % 50 == 0) {
			pool_grace_begins(&p);
			pool_grace_over(&p);
		}
		most = n > most ? n : most;
	}
	assert_true(failed > 100 && most > 1000);
	while (n > 0)
		pool_give(&p, live[--n].at);
	for (unsigned i = 0; i < 2; i++) {
		pool_grace_begins(&p);
		pool_grace_over(&p);
	}
	/* All are free, so all chunks are */
	for (unsigned i = 0; i < STORE_CLASSES; i++) {
		assert_int_equal(p.class[i].idle, p.class[i].chunks);
		assert_int_equal(p.class[i].held + p.class[i].used + p.class[i].resting, 0);
	}
	assert_int_equal(pool_take(&p, 65536 - 64, &live[0].at), 0);
	pool_deinit(&p);
	free(heap);
	free(owner);
}

/* Entries are refused while there is enough for what is held, also of another size. */
static void test_room(void **state)
{
	uint8_t *heap = heap_of(4 * 4096);
	uint64_t at[64], n = 0, b;
	struct pool p;

	assert_int_equal(pool_init(&p, heap, sizeof(uint8_t[4 * 4096]), 4096), 0);
	pool_claimed(&p);
	/* 15 of a chunk; 3 are held, so 3 must remain, and one whole chunk for the other size */
	for (; n < 3; n++)
		assert_int_equal(pool_take(&p, 256, &at[n]), 0);
	assert_int_equal(pool_take(&p, 4032, &b), 0);
	assert_int_equal(pool_bytes(&p, at[0]), 256);
	while (pool_has_room(&p, 256, 0)) {
		uint64_t one;

		assert_int_equal(pool_take(&p, 256, &one), 0);
		assert_int_equal(pool_publish(&p, one, 0), 1);
		n++;
	}
	assert_int_equal(n, 2 * 15 - 3);
	assert_false(pool_has_room(&p, 4032, 0));
	pool_give(&p, b);
	assert_true(pool_has_room(&p, 256, 0));
	assert_true(pool_has_room(&p, 256, 29));
	assert_false(pool_has_room(&p, 256, 30));
	pool_deinit(&p);
	free(heap);
}

/* Extents of a size that is not wanted any more, in each chunk */
static void test_drain(void **state)
{
	uint8_t *heap = heap_of(4 * 4096);
	uint64_t at[64], other, bucket, where, held;
	unsigned n = 0;
	uint32_t from = 0;
	struct pool p;

	assert_int_equal(pool_init(&p, heap, sizeof(uint8_t[4 * 4096]), 4096), 0);
	pool_claimed(&p);
	for (; pool_take(&p, 256, &at[n]) == 0; n++)
		assert_int_equal(pool_publish(&p, at[n], n), 1);
	assert_int_equal(pool_take(&p, 1024, &other), -ENOSPC);
	/* Chunk 1 has the second 15 of them, and one of these rests */
	assert_int_equal(pool_retire(&p, at[16]), 1);
	assert_false(pool_may_drain(&p, 1, 256));
	assert_true(pool_may_drain(&p, 1, 1024));
	pool_moved(&p, at[17], 99);
	pool_drain(&p, 1, 1024);
	assert_false(pool_may_drain(&p, 2, 1024));
	for (unsigned i = 15; i < 30; i++) {
		if (i == 16)
			continue;
		assert_true(pool_next_used(&p, 1, &from, &where, &bucket));
		assert_int_equal(where, at[i]);
		assert_int_equal(bucket, i == 17 ? 99 : i);
	}
	assert_false(pool_next_used(&p, 1, &from, &where, &bucket));
	/* What becomes free there is not taken */
	pool_grace_begins(&p);
	assert_true(pool_grace_over(&p));
	assert_int_equal(pool_take(&p, 256, &other), -ENOSPC);
	/* It goes on as before, */
	pool_undrain(&p);
	assert_int_equal(pool_take(&p, 256, &held), 0);
	assert_int_equal(held, at[16]);
	/* and is not drained again, nor is one of which an extent is held */
	assert_int_equal(pool_publish(&p, held, 16), 1);
	assert_false(pool_may_drain(&p, 1, 1024));
	assert_int_equal(pool_retire(&p, at[2 * 15]), 1);
	pool_grace_begins(&p);
	assert_true(pool_grace_over(&p));
	assert_int_equal(pool_take(&p, 256, &held), 0);
	assert_int_equal(held, at[2 * 15]);
	assert_false(pool_may_drain(&p, 2, 1024));
	assert_int_equal(pool_publish(&p, held, 30), 1);
	pool_drain(&p, 2, 1024);
	for (unsigned i = 2 * 15; i < 3 * 15; i++) {
		assert_int_equal(pool_take(&p, 1024, &other), -ENOSPC);
		assert_int_equal(pool_retire(&p, at[i]), 1);
	}
	pool_grace_begins(&p);
	assert_true(pool_grace_over(&p));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pool_take(&p, 1024, &other), 0);
	assert_int_equal(pool_take(&p, 1024, &other), -ENOSPC);
	pool_deinit(&p);
	free(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capacity),
		cmocka_unit_test(test_tagged_chunk),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
