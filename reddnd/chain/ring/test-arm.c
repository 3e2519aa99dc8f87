/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/publish.h"
#include "reddnd/chain/ring/recycle.h"

#include "mlx5/wqe.h"

#include "util/array.h"

#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* A queue of 3 WQEBBs whose first WQEBB has one relocation of each kind at a fixed place */
enum { SLOTS = 4, WQEBBS = 3, RING = 16, PAD = RING - SLOTS * WQEBBS };

struct fixture {
	struct chain_image *img;
	struct chain_env env;
	uint8_t ring[2][RING * CHAIN_WQEBB];
	uint8_t scratch[SLOTS * 16];
	uint8_t rq[SLOTS * 64];
};

static const struct chain_reloc relocs[] = {
	{.kind = CHAIN_REL_INDEX16, .where = 1, .offset = 1},
	{.kind = CHAIN_REL_QPN24, .where = 1, .index = 1, .offset = 4},
	{.kind = CHAIN_REL_SEQ32, .where = 1, .offset = 12, .addend = 2},
	{.kind = CHAIN_REL_ADDR64,
		.where = 1,
		.sym = CHAIN_SYM_QUEUE,
		.index = 0,
		.offset = 16,
		.addend = 70},
	{.kind = CHAIN_REL_RKEY32, .where = 1, .sym = CHAIN_SYM_QUEUE, .index = 0, .offset = 24},
	{.kind = CHAIN_REL_LKEY32, .where = 1, .sym = CHAIN_SYM_SCRATCH, .offset = 28},
	{.kind = CHAIN_REL_ADDR64, .where = 1, .sym = CHAIN_SYM_SCRATCH, .offset = 32, .addend = 8},
	{.kind = CHAIN_REL_QPN32, .where = 1, .index = 0, .offset = 40},
	{.kind = CHAIN_REL_CQN32, .where = 1, .index = CHAIN_CQ_RECV, .offset = 44},
	{.kind = CHAIN_REL_ENABLE, .where = 1, .index = 1, .offset = 48, .addend = WQEBBS + 1},
	{.kind = CHAIN_REL_WAIT, .where = 1, .index = 0, .offset = 52, .addend = 1},
	{.kind = CHAIN_REL_ENABLE, .where = 1, .index = 0, .offset = 56, .addend = WQEBBS},
	{.kind = CHAIN_REL_WAIT, .where = 1, .index = CHAIN_CQ_RECV, .offset = 60},
	{.kind = CHAIN_REL_INDEX16, .where = 1, .offset = 2 * 64 + 1},
	{.kind = CHAIN_REL_ADDR64, .where = 1, .sym = CHAIN_SYM_SLOT, .offset = 2 * 64 + 16, .addend = 64},
	{.kind = CHAIN_REL_RKEY32, .where = 1, .sym = CHAIN_SYM_SLOT, .offset = 2 * 64 + 24},
	{.kind = CHAIN_REL_ADDR64,
		.where = 1,
		.sym = CHAIN_SYM_REGION,
		.index = 1,
		.offset = 2 * 64 + 32,
		.addend = 5},
	{.kind = CHAIN_REL_LKEY32, .where = 1, .sym = CHAIN_SYM_REGION, .index = 1, .offset = 2 * 64 + 40},
	{.kind = CHAIN_REL_CQN32, .where = 1, .index = 1, .offset = 2 * 64 + 44},
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->img = calloc(1, sizeof(*f->img));
	f->img->nqueues = 2;
	for (unsigned q = 0; q < 2; q++) {
		struct chain_queue *iq = &f->img->queue[q];

		iq->wqebbs = WQEBBS;
		iq->head_wqebbs = q == 0;
		iq->cqes = 2;
		iq->wqes = malloc(WQEBBS * CHAIN_WQEBB);
		memset(iq->wqes, 0xa0 + (int)q, WQEBBS * CHAIN_WQEBB);
		iq->starts = calloc(1, WQEBBS);
		f->env.queue[q].qpn = 0x123400 + q;
		f->env.queue[q].cqn = 0x440 + q;
		f->env.queue[q].iova = 0x10000000ull * (q + 1);
		f->env.queue[q].lkey = 0x1100 + q;
		f->env.queue[q].rkey = 0x2200 + q;
		f->env.queue[q].ring = f->ring[q];
		f->env.queue[q].ring_wqebbs = chain_ring_wqebbs(iq, SLOTS);
	}
	f->img->relocs = malloc(sizeof(relocs));
	memcpy(f->img->relocs, relocs, sizeof(relocs));
	f->img->nrelocs = sizeof(relocs) / sizeof(relocs[0]);
	f->img->scratch_size = 16;
	f->img->scratch_init = malloc(16);
	memset(f->img->scratch_init, 0x5c, 16);
	f->img->nrecv = 3;
	f->img->recv[0] = (struct chain_recv_sge){CHAIN_SYM_QUEUE, 1, 7, 100};
	f->img->recv[1] = (struct chain_recv_sge){CHAIN_SYM_SCRATCH, 0, 3, 9};
	f->img->recv[2] = (struct chain_recv_sge){CHAIN_SYM_QUEUE, 0, 8, 16};
	f->env.slots = SLOTS;
	f->env.recv_cqn = 0x777;
	f->env.scratch.iova = 0x500000;
	f->env.scratch.lkey = 0x3300;
	f->env.scratch.mem = f->scratch;
	f->env.region[1].iova = 0x700000000000ull;
	f->env.region[1].lkey = 0x8800;
	f->env.slot_addr = 0xabcd000000ull;
	f->env.slot_rkey = 0x9900;
	f->env.slot_size = 4096;
	f->env.slot_count = 3;
	f->env.rq = f->rq;
	f->env.rq_stride = chain_rq_stride(f->img);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	chain_free(f->img);
	free(f);
	return 0;
}

static void arm(const struct fixture *f, uint64_t from, uint64_t to)
{
	struct chain_writer *writer;

	assert_int_equal(chain_writer_new(&writer, f->img), 0);
	chain_arm(writer, &f->env, from, to);
	chain_writer_free(writer);
}

static void sizes(void **state)
{
	struct chain_queue q = {.wqebbs = 3};
	struct chain_image img = {0};

	assert_int_equal(chain_ring_wqebbs(&q, 4), 16);
	assert_int_equal(chain_ring_wqebbs(&q, 8192), 32768);
	assert_int_equal(chain_ring_wqebbs(&q, 16384), 0);
	q.wqebbs = 4;
	assert_int_equal(chain_ring_wqebbs(&q, 4), 16);
	q.wqebbs = 32768;
	assert_int_equal(chain_ring_wqebbs(&q, 1), 32768);
	assert_int_equal(chain_ring_wqebbs(&q, 2), 0);
	assert_int_equal(chain_rq_stride(&img), 16);
	img.nrecv = 1;
	assert_int_equal(chain_rq_stride(&img), 16);
	img.nrecv = 4;
	assert_int_equal(chain_rq_stride(&img), 64);
	img.nrecv = 5;
	assert_int_equal(chain_rq_stride(&img), 128);
}

static void relocations(void **state)
{
	struct fixture *f = *state;
	/* slot 1 of lap 2 */
	uint64_t seq = 2 * SLOTS + 1;
	const uint8_t *w = f->ring[1] + 1 * WQEBBS * CHAIN_WQEBB;

	arm(f, seq, seq + 1);
	assert_int_equal(wqe_get(w + 1, 2), 2 * RING + WQEBBS);
	assert_int_equal(wqe_get(w + 4, 4), 0x123401a1); /* the byte below the QPN is the image's */
	assert_int_equal(wqe_get(w + 12, 4), seq + 2);
	assert_int_equal(wqe_get(w + 16, 8), 0x10000000 + WQEBBS * 64 + 70);
	assert_int_equal(wqe_get(w + 24, 4), 0x2200);
	assert_int_equal(wqe_get(w + 28, 4), 0x3300);
	assert_int_equal(wqe_get(w + 32, 8), 0x500000 + 16 + 8);
	assert_int_equal(wqe_get(w + 40, 4), 0x123400);
	assert_int_equal(wqe_get(w + 44, 4), 0x777);
	assert_int_equal(wqe_get(w + 48, 4), 2 * RING + 2 * WQEBBS + 1);
	assert_int_equal(wqe_get(w + 52, 4), 2 * seq + 1);
	assert_int_equal(wqe_get(w + 56, 4), 2 * RING + 2 * WQEBBS);
	assert_int_equal(wqe_get(w + 60, 4), seq);
	assert_int_equal(wqe_get(w + 128 + 1, 2), 2 * RING + WQEBBS + 2);
	assert_int_equal(wqe_get(w + 128 + 16, 8), 0xabcd000000 + seq % 3 * 4096 + 64);
	assert_int_equal(wqe_get(w + 128 + 24, 4), 0x9900);
	assert_int_equal(wqe_get(w + 128 + 32, 8), 0x700000000005);
	assert_int_equal(wqe_get(w + 128 + 40, 4), 0x8800);
	assert_int_equal(wqe_get(w + 128 + 44, 4), 0x441);
	/* everything else is the image's, and nothing beyond the slot was touched */
	assert_int_equal(w[0], 0xa1);
	assert_int_equal(w[127], 0xa1);
	assert_int_equal(w[-1], 0);
	assert_int_equal(w[WQEBBS * 64], 0);
	assert_int_equal(f->ring[0][WQEBBS * 64], 0xa0);
	assert_int_equal(f->ring[0][WQEBBS * 64 - 1], 0);
	assert_int_equal(f->scratch[15], 0);
	assert_int_equal(f->scratch[16], 0x5c);
	assert_int_equal(f->scratch[31], 0x5c);
	assert_int_equal(f->scratch[32], 0);
}

static void the_last_slot_enables_across_the_pad(void **state)
{
	struct fixture *f = *state;
	const uint8_t *w = f->ring[1] + 3 * WQEBBS * CHAIN_WQEBB;

	arm(f, 3, 4);
	assert_int_equal(wqe_get(w + 48, 4), RING + 1);
	assert_int_equal(wqe_get(w + 56, 4), SLOTS * WQEBBS);
	assert_int_equal(chain_enable_index(f->img, &f->env, 1, 3, WQEBBS + 1), RING + 1);
	/* of a code queue, the pad goes with the end; of the reply queue, with the next head */
	assert_int_equal(chain_enable_index(f->img, &f->env, 1, 3, WQEBBS), RING);
	assert_int_equal(chain_enable_index(f->img, &f->env, 1, 2, WQEBBS), 3 * WQEBBS);
	assert_int_equal(chain_enable_index(f->img, &f->env, 0, 3, WQEBBS), SLOTS * WQEBBS);
	assert_int_equal(chain_end_index(f->img, &f->env, 0, 3), SLOTS * WQEBBS);
	assert_int_equal(chain_start_queue(f->img), 0);
	assert_int_equal(chain_start_index(f->img), 1);
}

/* With the head in a code queue the pads change places */
static void a_head_elsewhere(void **state)
{
	struct fixture *f = *state;

	f->img->queue[0].head_wqebbs = 0;
	f->img->queue[1].head_wqebbs = 2;
	assert_int_equal(chain_enable_index(f->img, &f->env, 1, 3, WQEBBS), SLOTS * WQEBBS);
	assert_int_equal(chain_enable_index(f->img, &f->env, 1, 3, WQEBBS + 2), RING + 2);
	assert_int_equal(chain_enable_index(f->img, &f->env, 0, 3, WQEBBS), RING);
	assert_int_equal(chain_end_index(f->img, &f->env, 0, 3), SLOTS * WQEBBS);
	assert_int_equal(chain_start_queue(f->img), 1);
	assert_int_equal(chain_start_index(f->img), 2);
}

/* Recycled, the last instance leaves the head of the next lap to queue 0 */
static void a_lap_of_a_recycled_chain_ends(void **state)
{
	struct fixture *f = *state;
	const uint8_t *last = f->ring[1] + 3 * WQEBBS * CHAIN_WQEBB;
	const uint8_t *end = f->ring[0] + SLOTS * WQEBBS * CHAIN_WQEBB;

	assert_false(chain_has_lap_end(f->img));
	f->img->queue[0].head_wqebbs = 0;
	f->img->queue[1].head_wqebbs = 1;
	assert_true(chain_has_lap_end(f->img));
	arm(f, 0, SLOTS);
	chain_write_pad(f->img, &f->env, 0, 0);
	chain_write_lap_end(f->img, &f->env, 0);
	assert_int_equal(wqe_get(last - WQEBBS * CHAIN_WQEBB + 48, 4), 3 * WQEBBS + 1);
	assert_int_equal(wqe_get(last + 48, 4), RING); /* with the pad */
	assert_int_equal(wqe_get(last + 56, 4), RING); /* of the reply: as ever */
	assert_int_equal(chain_lap_end_at(f->img, &f->env), SLOTS * WQEBBS);
	assert_int_equal(end[WQE_OPCODE], WQE_OP_SEND_EN);
	assert_int_equal(wqe_get(end + WQE_INDEX, 2), SLOTS * WQEBBS);
	assert_int_equal(wqe_get(end + WQE_QPN_DS, 4), 0x12340002);
	assert_int_equal(wqe_get(end + WQE_SYNC_INDEX, 4), RING + 1);
	assert_int_equal(wqe_get(end + WQE_SYNC_OBJECT, 4), 0x123401);
	end += CHAIN_WQEBB;
	assert_int_equal(end[WQE_OPCODE], WQE_OP_NOP);
	assert_int_equal(wqe_get(end + WQE_INDEX, 2), SLOTS * WQEBBS + 1);
	assert_int_equal(wqe_get(end + WQE_QPN_DS, 4), 0x12340000 | (PAD - 1) * 4);
	/* laps later, and of another instance */
	assert_int_equal(chain_lap_end_index(f->img, &f->env, 4095), 1);
	assert_int_equal(chain_recycled_index(f->img, &f->env, &relocs[9], 2 * SLOTS - 1), 2 * RING);
	assert_int_equal(chain_recycled_index(f->img, &f->env, &relocs[9], 2 * SLOTS), 2 * RING + WQEBBS + 1);
}

static void counters_wrap(void **state)
{
	struct fixture *f = *state;
	uint64_t lap = 65536 / RING, seq = lap * SLOTS - 1; /* last instance before the WQE index wraps */
	const uint8_t *w = f->ring[1];

	arm(f, seq, seq + 1);
	assert_int_equal(wqe_get(w + 3 * WQEBBS * 64 + 1, 2), 65536 - RING + 3 * WQEBBS);
	assert_int_equal(wqe_get(w + 3 * WQEBBS * 64 + 48, 4), 1);
	arm(f, seq + 1, seq + 2);
	assert_int_equal(wqe_get(w + 1, 2), 0);

	seq = (1u << 23); /* 2 CQEs each: CQE numbers wrap at 24 bits, the RECV CQ's do not yet */
	arm(f, seq, seq + 1);
	assert_int_equal(wqe_get(w + 52, 4), 1);
	assert_int_equal(wqe_get(w + 60, 4), seq);
	seq = (1ull << 32) + 4;
	arm(f, seq, seq + 1);
	assert_int_equal(wqe_get(w + 12, 4), 6);
	assert_int_equal(wqe_get(w + 60, 4), 4);
}

static void assert_pad(const struct fixture *f, unsigned q, unsigned lap)
{
	struct mlx5_wqe_ctrl_seg c;
	const uint8_t *pad = f->ring[q] + SLOTS * WQEBBS * CHAIN_WQEBB;

	memcpy(&c, pad, sizeof(c));
	assert_int_equal(be32toh(c.opmod_idx_opcode), (lap * RING + SLOTS * WQEBBS) << 8 | MLX5_OPCODE_NOP);
	assert_int_equal(be32toh(c.qpn_ds), (0x123400 + q) << 8 | PAD * 4);
	assert_int_equal(c.fm_ce_se, 0);
	assert_int_equal(c.imm, 0);
}

static void the_pad_comes_with_slot_0_of_the_next_lap(void **state)
{
	struct fixture *f = *state;
	const uint8_t *pad = f->ring[1] + SLOTS * WQEBBS * CHAIN_WQEBB;

	arm(f, 0, SLOTS);
	assert_int_equal(wqe_get(pad, 8), 0);
	arm(f, SLOTS, SLOTS + 1);
	assert_pad(f, 0, 0);
	assert_pad(f, 1, 0);
	/* re-arming the last slot leaves alone a pad that is still to be executed */
	for (uint64_t seq = SLOTS + 1; seq < 2 * SLOTS; seq++)
		arm(f, seq, seq + 1);
	assert_pad(f, 1, 0);
	arm(f, 2 * SLOTS, 2 * SLOTS + 1);
	assert_pad(f, 1, 1);
}

/* Laps of which the first is armed from nothing, the others again, @batch at a time; instances spoil what
 * they may */
static void arm_laps(struct fixture *f, uint64_t count, unsigned batch)
{
	struct chain_writer *writer;

	assert_int_equal(chain_writer_new(&writer, f->img), 0);
	arm(f, 0, SLOTS);
	for (uint64_t seq = SLOTS; seq < count; seq += batch) {
		unsigned n = seq + batch < count ? batch : (unsigned)(count - seq);

		for (uint64_t i = seq; i < seq + n; i++) {
			memset(f->ring[1] + i % SLOTS * WQEBBS * CHAIN_WQEBB + 70, 0x77, 20);
			memset(f->scratch + i % SLOTS * 16 + 3, 0x77, 9);
		}
		chain_arm_again(writer, &f->env, seq, seq + n);
		if (seq == SLOTS) /* the pad is there from now on */
			assert_pad(f, 1, 0);
	}
	chain_writer_free(writer);
}

static void arming_again_does_the_same(void **state)
{
	struct fixture *f = *state;
	uint8_t whole[2][sizeof(f->ring[0])], scratch[sizeof(f->scratch)];
	struct chain_restore restores[] = {{CHAIN_SYM_QUEUE, 1, 70, 20}, {CHAIN_SYM_SCRATCH, 0, 3, 9}};
	const uint32_t slot_counts[] = {f->env.slot_count, 3, 1, 0};

	f->img->restores = memcpy(malloc(sizeof(restores)), restores, sizeof(restores));
	f->img->nrestores = COUNT(restores);
	f->img->index_reloc = f->img->nrelocs;
	for (unsigned i = 0; i < COUNT(slot_counts); i++) {
		f->env.slot_count = slot_counts[i];
		for (uint64_t seq = 0; seq < 3 * SLOTS + 1; seq++)
			arm(f, seq, seq + 1);
		memcpy(whole, f->ring, sizeof(whole));
		memcpy(scratch, f->scratch, sizeof(scratch));
		for (unsigned batch = 1; batch <= SLOTS; batch++) {
			memset(f->ring, 0, sizeof(f->ring));
			memset(f->scratch, 0, sizeof(f->scratch));
			arm_laps(f, 3 * SLOTS + 1, batch);
			assert_pad(f, 1, 2);
			assert_memory_equal(f->ring, whole, sizeof(whole));
			assert_memory_equal(f->scratch, scratch, sizeof(scratch));
		}
	}
}

static void a_long_pad_is_several_nops(void **state)
{
	struct fixture *f = *state;
	static uint8_t ring[2][64 * CHAIN_WQEBB];
	unsigned at = 2 * WQEBBS;
	/* of 256 bytes at most, and 58 WQEBBs in all */
	const unsigned expect[] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2};

	f->env.slots = 2;
	for (unsigned q = 0; q < 2; q++) {
		f->env.queue[q].ring = ring[q];
		f->env.queue[q].ring_wqebbs = 64;
	}
	arm(f, 2, 3);
	for (unsigned i = 0; i < COUNT(expect); at += expect[i++]) {
		const uint8_t *w = ring[1] + (size_t)at * CHAIN_WQEBB;

		assert_int_equal(wqe_get(w, 4), at << 8);
		assert_int_equal(w[7], expect[i] * 4);
	}
}

/* Where the device takes longer WQEs, it has fewer of them */
static void a_pad_has_the_longest_nops(void **state)
{
	struct fixture *f = *state;

	f->img->pad_wqebbs = PAD - 1;
	chain_write_pad(f->img, &f->env, 1, 0);
	assert_int_equal(f->ring[1][SLOTS * WQEBBS * CHAIN_WQEBB + 7], (PAD - 1) * 4);
	assert_int_equal(f->ring[1][(RING - 1) * CHAIN_WQEBB + 7], 4);
	f->img->pad_wqebbs = CHAIN_LONGEST_PAD;
	chain_write_pad(f->img, &f->env, 1, 0);
	assert_int_equal(f->ring[1][SLOTS * WQEBBS * CHAIN_WQEBB + 7], PAD * 4);
}

static void wqes_of_a_ring(void **state)
{
	uint8_t starts[] = {1, 1, 0, 1};
	struct chain_queue q = {.wqebbs = 3, .starts = starts};

	/* two WQEs an instance, and the NOPs of the pad, which are flushed like everything else */
	assert_int_equal(chain_ring_wqes(&q, 4), 4 * 2 + 1);
	assert_int_equal(chain_ring_wqes(&q, 128), 128 * 2 + 128 / 4);
	q.wqebbs = 4;
	assert_int_equal(chain_ring_wqes(&q, 128), 128 * 3);
	/* one CQE of each that ran, and what was enabled when the queue failed */
	q.cqes = 1;
	assert_int_equal(chain_ring_cqes(&q, 128), 128 + 3);
	assert_int_equal(chain_ring_flushed(&q, 128, 512), 3);
	assert_int_equal(
		chain_ring_flushed(&q, 128, 1024), 3 + 512 / 4); /* that of a recycled chain is longer */
	q.wqebbs = 3;
	assert_int_equal(chain_ring_cqes(&q, 128), 128 + 2 + 128 / 4);
	q.cqes = 2;
	assert_int_equal(chain_ring_cqes(&q, 128), 128 * 2 + 128 / 4);
}

static void receives(void **state)
{
	struct fixture *f = *state;
	const struct mlx5_wqe_data_seg *seg = (const void *)(f->rq + 2 * 64);

	memset(f->rq, 0xff, sizeof(f->rq));
	assert_int_equal(f->env.rq_stride, 64);
	chain_format_recv(f->img, &f->env, 2);
	assert_int_equal(be32toh(seg[0].byte_count), 7);
	assert_int_equal(be32toh(seg[0].lkey), 0x1101);
	assert_int_equal(be64toh(seg[0].addr), 0x20000000 + 2 * WQEBBS * 64 + 100);
	assert_int_equal(be32toh(seg[1].byte_count), 3);
	assert_int_equal(be32toh(seg[1].lkey), 0x3300);
	assert_int_equal(be64toh(seg[1].addr), 0x500000 + 2 * 16 + 9);
	assert_int_equal(be64toh(seg[2].addr), 0x10000000 + 2 * WQEBBS * 64 + 16);
	assert_int_equal(seg[3].byte_count, 0);
	assert_int_equal(be32toh(seg[3].lkey), MLX5_INVALID_LKEY);
	assert_int_equal(seg[3].addr, 0);
	assert_int_equal(f->rq[2 * 64 - 1], 0xff);
	assert_int_equal(f->rq[3 * 64], 0xff);
	/* a full list needs no end */
	f->img->recv[3] = f->img->recv[0];
	f->img->nrecv = 4;
	chain_format_recv(f->img, &f->env, 2);
	assert_int_equal(be32toh(seg[3].byte_count), 7);
	assert_int_equal(f->rq[3 * 64], 0xff);
}

/* The extent of a slot is in its RECV, and in what it publishes */
static void extents(void **state)
{
	struct fixture *f = *state;
	const struct mlx5_wqe_data_seg *seg = (const void *)(f->rq + 2 * 64);
	uint64_t at[SLOTS] = {0x100, 0x200, 0x9876543210, 0x400};
	const uint8_t *cas = f->ring[1] + 2 * WQEBBS * CHAIN_WQEBB + 64;
	const uint8_t located[] = {0, 0, 0, 0x98, 0x76, 0x54, 0x32, 0x10};
	struct chain_writer *writer;

	f->img->payload = (struct chain_payload){.max = 4096, .region = 1};
	f->img->publish = (struct chain_publish){.there = true, .extent = true, .queue = 1, .offset = 64};
	f->img->recv[f->img->nrecv++] = (struct chain_recv_sge){CHAIN_SYM_EXTENT, 0, 4096, 18};
	f->env.extents.iova = 0x600000000000;
	f->env.extents.lkey = 0x4400;
	f->env.extents.at = at;
	arm(f, 2, 3);
	chain_format_recv(f->img, &f->env, 2);
	for (unsigned k = 0; k < sizeof(located);
		k++) /* a byte in memory is at the other end of an operand */
		assert_int_equal(cas[WQE_ATOMIC + 7 - k], located[k]);
	assert_int_equal(be32toh(seg[3].byte_count), 4096);
	assert_int_equal(be32toh(seg[3].lkey), 0x4400);
	assert_int_equal(be64toh(seg[3].addr), 0x600000000000 + 0x9876543210 + 18);
	at[2] = 0x300;
	assert_int_equal(chain_writer_new(&writer, f->img), 0);
	chain_arm_again(writer, &f->env, SLOTS, SLOTS + 4);
	chain_format_recv(f->img, &f->env, 2);
	assert_int_equal(wqe_get64(cas + WQE_ATOMIC), chain_locator(0x300, 0));
	assert_int_equal(wqe_get64(cas - WQEBBS * CHAIN_WQEBB + WQE_ATOMIC), chain_locator(0x200, 0));
	assert_int_equal(be64toh(seg[3].addr), 0x600000000000 + 0x300 + 18);
	chain_writer_free(writer);
}

static void outcomes(void **state)
{
	struct chain_image img = {.publish = {.there = true, .offset = 64, .was = 8}};
	const uint64_t old = chain_locator(0x1000, 77), now = chain_locator(0x2000, 88);
	uint8_t wqes[2 * CHAIN_WQEBB] = {0}, scratch[16];
	uint64_t was = htole64(old);
	struct chain_outcome o;

	assert_int_equal(chain_located_at(old), 0x1000);
	assert_int_equal(chain_located_bytes(old), 77);
	wqe_put64(wqes + 64 + WQE_RADDR, 0x7700);
	wqe_put64(wqes + 64 + WQE_ATOMIC, now);
	wqe_put64(wqes + 64 + WQE_ATOMIC + 8, old);
	memcpy(scratch + 8, &was, sizeof(was));
	o = chain_outcome(&img, wqes, scratch);
	assert_false(o.tried || o.published);
	wqes[64 + WQE_OPCODE] = WQE_OP_CAS;
	o = chain_outcome(&img, wqes, scratch);
	assert_true(o.tried && o.published && o.old == old && o.now == now && o.place == 0x7700);
	scratch[8] ^= 1;
	assert_false(chain_outcome(&img, wqes, scratch).published);
	assert_true(chain_outcome(&img, wqes, scratch).tried);
	/* flushed with what a request of no bytes reads, or before it read anything */
	wqe_put64(wqes + 64 + WQE_ATOMIC + 8, 0);
	memset(scratch + 8, 0xff, sizeof(was));
	o = chain_outcome(&img, wqes, scratch);
	assert_true(o.tried && !o.published && o.old == 0);
	wqe_put64(wqes + 64 + WQE_ATOMIC + 8, old);
	img.publish.swapped = true;
	was = htobe64(old);
	memcpy(scratch + 8, &was, sizeof(was));
	assert_true(chain_outcome(&img, wqes, scratch).published);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		T(relocations),
		T(the_last_slot_enables_across_the_pad),
		T(a_head_elsewhere),
		T(a_lap_of_a_recycled_chain_ends),
		T(counters_wrap),
		T(the_pad_comes_with_slot_0_of_the_next_lap),
		T(arming_again_does_the_same),
		T(a_long_pad_is_several_nops),
		T(a_pad_has_the_longest_nops),
		cmocka_unit_test(wqes_of_a_ring),
		T(receives),
		T(extents),
		cmocka_unit_test(outcomes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
