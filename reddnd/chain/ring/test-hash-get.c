/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/chain/by-hand.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/decode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One armed instance in words: the numbers make every relocation visible */
enum { SLOTS = 2 };

static void free_image(struct chain_image **img)
{
	chain_free(*img);
}
#define IMAGE __attribute__((cleanup(free_image))) struct chain_image

static void assert_lines(
	const struct chain_image *img, unsigned q, const uint8_t *wqes, const char *const *lines)
{
	char line[400];
	unsigned at = 0;

	for (; *lines; lines++) {
		assert_true(at < img->queue[q].wqebbs);
		assert_int_equal(img->queue[q].starts[at], 1);
		at += chain_decode(wqes + at * CHAIN_WQEBB, (img->queue[q].wqebbs - at) * CHAIN_WQEBB, line,
			sizeof(line));
		assert_string_equal(line, *lines);
	}
	assert_int_equal(at, img->queue[q].wqebbs);
}

/* What the chain of @seq may have left behind in its slot */
static void spoil(const struct chain_image *img, const struct chain_env *env, uint64_t seq)
{
	size_t slot = seq % SLOTS;

	assert_int_not_equal(img->nrestores, 0);
	for (unsigned i = 0; i < img->nrestores; i++) {
		const struct chain_restore *r = &img->restores[i];
		uint8_t *of = r->sym == CHAIN_SYM_SCRATCH
				      ? env->scratch.mem + slot * img->scratch_size
				      : env->queue[r->index].ring +
						slot * img->queue[r->index].wqebbs * CHAIN_WQEBB;

		memset(of + r->offset, 0x77, r->len);
	}
}

/* Arms instance 3 (slot 1 of lap 1), from nothing and after another one, and compares every queue */
static void assert_armed(const struct chain_image *img, const char *const *const *lines)
{
	struct chain_env env = {.slots = SLOTS,
		.recv_cqn = 0x90,
		.slot_addr = 0xc000000,
		.slot_rkey = 0xcc,
		.slot_size = 0x1000,
		.slot_count = 8};
	uint8_t ring[3][32 * CHAIN_WQEBB], scratch[SLOTS * 64], again[3][32 * CHAIN_WQEBB];
	struct chain_writer *writer;

	memset(ring, 0, sizeof(ring));
	memset(again, 0, sizeof(again));
	memset(scratch, 0xff, sizeof(scratch));
	env.scratch.iova = 0x5000;
	env.scratch.lkey = env.scratch.rkey = 0x55;
	env.scratch.mem = scratch;
	for (unsigned q = 0; q < img->nqueues; q++) {
		env.queue[q].qpn = 0x10 + q;
		env.queue[q].cqn = 0x80 + q;
		env.queue[q].iova = 0x10000 * (q + 1);
		env.queue[q].lkey = env.queue[q].rkey = 0xa0 + q;
		env.queue[q].ring = ring[q];
		env.queue[q].ring_wqebbs = chain_ring_wqebbs(&img->queue[q], SLOTS);
		assert_true(env.queue[q].ring_wqebbs && env.queue[q].ring_wqebbs <= 32);
	}
	for (unsigned r = 0; r < img->nregions; r++) {
		env.region[r].iova = (uint64_t)(r + 1) << 56;
		env.region[r].lkey = env.region[r].rkey = 0xe0 + r;
	}
	assert_int_equal(chain_writer_new(&writer, img), 0);
	chain_arm(writer, &env, 3, 4);
	for (unsigned q = 0; q < img->nqueues; q++)
		assert_lines(img, q, ring[q] + img->queue[q].wqebbs * CHAIN_WQEBB, lines[q]);
	for (unsigned q = 0; q < img->nqueues; q++)
		env.queue[q].ring = again[q];
	chain_arm(writer, &env, 1, 2);
	spoil(img, &env, 1);
	chain_arm_again(writer, &env, 3, 4);
	chain_writer_free(writer);
	assert_memory_equal(again, ring, sizeof(ring));
	/* lanes are 0, whatever the instance before left there; only the parallel form has an opcode in store
	 */
	for (unsigned i = 0; i < img->scratch_size; i++)
		assert_int_equal(
			scratch[img->scratch_size + i], img->nqueues == 3 && i == 16 ? WQE_OP_WRITE_IMM : 0);
}

/* ring of 16 WQEBBs, 5 per instance: instance 3 starts at 16 + 5. The code queue's end there at 50, and its
 * pad at 64 */
static const char *const reply_lines[] = {
	"   21 qp 0x10 ds 2 wait cq 0x90 index 3",
	"   22 qp 0x10 ds 2 send_en qp 0x11 index 64",
	"   23 qp 0x10 ds 3 nop",
	"   24 qp 0x10 ds 3 nop",
	"   25 qp 0x10 ds 3 write_imm signalled imm=0x3 remote 0xc003000 (rkey 0xcc) "
	"<- 64 B at 0x300000000000000 (lkey 0xe2)",
	NULL,
};

/* The end of the answer, too, waits for its opcode */
static const char *const dormant_lines[] = {
	"   22 qp 0x10 ds 2 wait cq 0x90 index 3",
	"   23 qp 0x10 ds 2 send_en qp 0x11 index 32",
	"   24 qp 0x10 ds 2 send_en qp 0x12 index 16",
	"   25 qp 0x10 ds 3 nop",
	"   26 qp 0x10 ds 3 nop",
	"   27 qp 0x10 ds 3 nop signalled",
	NULL,
};

static void sequential_in_words(void **state)
{
	static const char *const look[] = {
		/* ring of 32 WQEBBs, 9 per instance: instance 3 starts at 32 + 9 */
		"   41 qp 0x11 ds 5 read remote 0x100000000000000 (rkey 0xe0) -> 3 B at 0x101e1 (lkey 0xa0), "
		"5 B at 0x101eb (lkey 0xa0), 7 B at 0x5018 (lkey 0x55)",
		"   43 qp 0x11 ds 5 read remote 0x100000000000000 (rkey 0xe0) -> 3 B at 0x10221 (lkey 0xa0), "
		"5 B at 0x1022b (lkey 0xa0), 7 B at 0x5021 (lkey 0x55)",
		"   45 qp 0x11 ds 4 cas fenced remote 0x5018 (rkey 0x55) compare=0xa5000000000000 "
		"swap=0x800000000000000 "
		"-> 8 B at 0x5028 (lkey 0x55)",
		"   46 qp 0x11 ds 4 cas remote 0x5020 (rkey 0x55) compare=0xa500000000000000 swap=0x8 -> 8 B "
		"at 0x5028 (lkey "
		"0x55)",
		"   47 qp 0x11 ds 4 read fenced signalled remote 0x501f (rkey 0x55) -> 1 B at 0x101c3 (lkey "
		"0xa0), 1 B at 0x10203 (lkey 0xa0)",
		"   48 qp 0x11 ds 2 wait cq 0x81 index 3",
		"   49 qp 0x11 ds 2 send_en qp 0x10 index 34",
		NULL,
	};
	IMAGE *img = NULL;

	(void)state;
	assert_int_equal(chain_hash_get(&(struct chain_hash_get){.offset_len = 5}, &img), 0);
	assert_armed(img, (const char *const *const[]){reply_lines, look});
	assert_int_equal(img->n_copy, 6);
	assert_int_equal(img->n_atomic, 2);
	assert_int_equal(img->n_sync, 4);
	assert_int_equal(img->max_rd_atomic, 2);
}

static void parallel_in_words(void **state)
{
	static const char *const look0[] = {
		"   23 qp 0x11 ds 5 read remote 0x100000000000000 (rkey 0xe0) -> 3 B at 0x10261 (lkey 0xa0), "
		"5 B at 0x1026b (lkey 0xa0), 7 B at 0x5020 (lkey 0x55)",
		"   25 qp 0x11 ds 4 cas fenced remote 0x5020 (rkey 0x55) compare=0xa5000000000000 "
		"swap=0x800000000000000 "
		"-> 8 B at 0x5038 (lkey 0x55)",
		"   26 qp 0x11 ds 3 read fenced signalled remote 0x5027 (rkey 0x55) -> 1 B at 0x10243 (lkey "
		"0xa0)",
		"   27 qp 0x11 ds 2 wait cq 0x81 index 3",
		"   28 qp 0x11 ds 2 wait cq 0x82 index 3",
		"   29 qp 0x11 ds 2 send_en qp 0x10 index 35",
		NULL,
	};
	static const char *const look1[] = {
		/* ring of 8, 4 per instance */
		"   12 qp 0x12 ds 5 read remote 0x100000000000000 (rkey 0xe0) -> 3 B at 0x102a1 (lkey 0xa0), "
		"5 B at 0x102ab (lkey 0xa0), 7 B at 0x5028 (lkey 0x55)",
		"   14 qp 0x12 ds 4 cas fenced remote 0x5028 (rkey 0x55) compare=0xa5000000000000 "
		"swap=0x800000000000000 "
		"-> 8 B at 0x5038 (lkey 0x55)",
		"   15 qp 0x12 ds 4 read fenced signalled remote 0x502f (rkey 0x55) -> 1 B at 0x10283 (lkey "
		"0xa0), 1 B at 0x102c3 (lkey 0xa0)",
		NULL,
	};
	IMAGE *img = NULL;

	(void)state;
	assert_int_equal(
		chain_hash_get(&(struct chain_hash_get){.parallel = true, .offset_len = 5}, &img), 0);
	assert_armed(img, (const char *const *const[]){dormant_lines, look0, look1});
}

static void requests(void **state)
{
	(void)state;
	for (unsigned par = 0; par < 2; par++)
		for (uint8_t len = 1; len <= 7; len++) {
			IMAGE *img = NULL;
			unsigned q1 = par ? 2 : 1;

			assert_int_equal(chain_hash_get(&(struct chain_hash_get){par, len}, &img), 0);
			assert_int_equal(img->arg_len, 2 * (6 + len));
			assert_int_equal(img->nrecv, 4);
			for (unsigned i = 0; i < 4; i++) {
				assert_int_equal(img->recv[i].sym, CHAIN_SYM_QUEUE);
				assert_int_equal(img->recv[i].index, i < 2 ? 1 : q1);
				assert_int_equal(img->recv[i].len, i % 2 ? len : 6);
			}
			assert_string_equal(
				chain_step_at(img, 2, 1, (uint16_t)(img->recv[0].offset / 64), NULL),
				"match0");
			assert_string_equal(
				chain_step_at(img, 2, q1, (uint16_t)(img->recv[2].offset / 64), NULL),
				"match1");
			assert_string_equal(
				chain_step_at(img, 2, 1, (uint16_t)(img->recv[1].offset / 64), NULL),
				"look0");
			assert_string_equal(
				chain_step_at(img, 2, q1, (uint16_t)(img->recv[3].offset / 64), NULL),
				"look1");
			/* compare is at byte 40 of a CAS, the remote address at byte 16 of a READ */
			assert_int_equal(img->recv[0].offset % 64, 42);
			assert_int_equal(img->recv[1].offset % 64, 24 - len);
			assert_int_equal(img->recv[2].offset % 64, par ? 42 : 41);
			assert_int_equal(img->recv[3].offset % 64, 24 - len);
			assert_int_equal(img->region_bits[CHAIN_HASH_GET_WINDOW], 8 * len);
			assert_int_equal(img->region_bits[CHAIN_HASH_GET_HEAP], 40);
			assert_int_equal(img->region_bits[CHAIN_HASH_GET_LIVE], 0);
		}
}

static void wrong_lengths(void **state)
{
	struct chain_image *img = NULL;

	(void)state;
	assert_int_equal(chain_hash_get(&(struct chain_hash_get){.offset_len = 0}, &img), -EINVAL);
	assert_int_equal(chain_hash_get(&(struct chain_hash_get){.offset_len = 8}, &img), -EINVAL);
	assert_null(img);
}

/* A hit that was never patched must not ask for 0 bytes, which would be 2^31 */
static void lengths_are_never_zero(void **state)
{
	IMAGE *img = NULL;

	(void)state;
	assert_int_equal(chain_hash_get(&(struct chain_hash_get){.offset_len = 3}, &img), 0);
	for (unsigned hit = 0; hit < 2; hit++)
		assert_int_equal(img->queue[0].wqes[(2 + hit) * 64 + 32 + 3], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequential_in_words),
		cmocka_unit_test(parallel_in_words),
		cmocka_unit_test(requests),
		cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(lengths_are_never_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
