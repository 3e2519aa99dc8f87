/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/build.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/arm.h"
#include "tests/chain/assert-error.h"
#include "tests/lib/nomem.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * A small chain in three parts: the head and the end of the code queue and the answer are always the same,
 * the test supplies the steps in between.
 */
enum { MAX = 24, OPCODE_WAIT = 0x0f, OPCODE_SEND_EN = 0x17 };

static const struct chain_queue_desc queues[] = {{"reply", 2}, {"code", 0}};
static const struct chain_word words[] = {
	{"a", 8, (const uint8_t *)"initial"}, {"b", 5, NULL}, {"c", 16, NULL}, {"pair", 48, NULL}};

struct sketch {
	struct chain_step steps[MAX];
	struct chain_place args[CHAIN_MAX_RECV_SGE + 1];
	struct chain_desc d;
	struct chain_error err;
};

#define REGION(i, at, n)                                                                                     \
	{                                                                                                    \
		.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)                              \
	}
#define WORD(w, at, n)                                                                                       \
	{                                                                                                    \
		.kind = CHAIN_AT_SCRATCH, .name = (w), .from = (at), .len = (n)                              \
	}
#define SLOT(at)                                                                                             \
	{                                                                                                    \
		.kind = CHAIN_AT_SLOT, .from = (at)                                                          \
	}
#define FIELD(step, f, at, n)                                                                                \
	{                                                                                                    \
		.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)               \
	}

static void sketch(struct sketch *k, const struct chain_step *mid, unsigned nmid)
{
	const struct chain_step head[] = {
		{.queue = 0, .verb = CHAIN_WAIT},
		{.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
	};
	const struct chain_step tail[] = {
		{.label = "answer",
			.queue = 1,
			.verb = CHAIN_SEND_EN,
			.target = 0,
			.upto = CHAIN_UPTO_NEXT_HEAD},
		{.label = "done",
			.queue = 0,
			.verb = CHAIN_WRITE_IMM,
			.flags = CHAIN_SIGNALLED | CHAIN_IMM_SEQ,
			.remote = SLOT(0),
			.local = {REGION(1, 128, 64)}},
	};

	memset(k, 0, sizeof(*k));
	memcpy(k->steps, head, sizeof(head));
	if (nmid)
		memcpy(k->steps + 2, mid, nmid * sizeof(*mid));
	memcpy(k->steps + 2 + nmid, tail, sizeof(tail));
	k->d = (struct chain_desc){.name = "sketch",
		.queues = queues,
		.nqueues = 2,
		.words = words,
		.nwords = 3,
		.nregions = 2,
		.steps = k->steps,
		.nsteps = 4 + nmid,
		.args = k->args};
}

static struct chain_image *built(struct sketch *k)
{
	struct chain_image *img = NULL;
	int r = chain_build(&k->d, &img, &k->err);

	if (r)
		fail_msg("refused: %s", chain_error_name(k->err.code));
	assert_int_equal(k->err.code, CHAIN_E_NONE);
	return img;
}

static void free_image(struct chain_image **img)
{
	chain_free(*img);
}
#define IMAGE __attribute__((cleanup(free_image))) struct chain_image

static const struct chain_reloc *reloc_at(const struct chain_image *img, unsigned q, unsigned offset)
{
	for (unsigned i = 0; i < img->nrelocs; i++)
		if (img->relocs[i].where == q && img->relocs[i].offset == offset)
			return &img->relocs[i];
	fail_msg("no relocation at byte %u of queue %u", offset, q);
	return NULL;
}

static void assert_reloc(const struct chain_image *img, unsigned q, unsigned offset,
	enum chain_reloc_kind kind, unsigned sym, unsigned index, int64_t addend)
{
	const struct chain_reloc *r = reloc_at(img, q, offset);

	assert_int_equal(r->kind, kind);
	assert_int_equal(r->sym, sym);
	assert_int_equal(r->index, index);
	assert_int_equal(r->addend, addend);
}

/* Builds one step and hands out its WQE, the first of queue 1 */
static const uint8_t *one(struct sketch *k, struct chain_image **img, struct chain_step st)
{
	sketch(k, &st, 1);
	*img = built(k);
	return (*img)->queue[1].wqes;
}

static void assert_ctrl(const uint8_t *wqe, unsigned opmod, unsigned opcode, unsigned ds, unsigned flags)
{
	struct mlx5_wqe_ctrl_seg c;

	memcpy(&c, wqe, sizeof(c));
	assert_int_equal(be32toh(c.opmod_idx_opcode), opmod << 24 | opcode);
	assert_int_equal(be32toh(c.qpn_ds), ds);
	assert_int_equal(c.signature, 0);
	assert_int_equal(c.fm_ce_se, flags);
}

static void write_and_read(void **state)
{
	IMAGE *w = NULL, *r = NULL;
	struct sketch k;
	const uint8_t *wqe;
	struct mlx5_wqe_data_seg seg;
	enum { RADDR = sizeof(struct mlx5_wqe_ctrl_seg), DATA = RADDR + sizeof(struct mlx5_wqe_raddr_seg) };

	(void)state;
	wqe = one(&k, &w,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_WRITE,
			.flags = CHAIN_SIGNALLED | CHAIN_FENCE,
			.remote = WORD("b", 1, 0),
			.local = {REGION(1, 40, 4)}});
	assert_ctrl(wqe, 0, MLX5_OPCODE_RDMA_WRITE, 3, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE);
	assert_reloc(w, 1, 1, CHAIN_REL_INDEX16, 0, 0, 0);
	assert_reloc(w, 1, offsetof(struct mlx5_wqe_ctrl_seg, qpn_ds), CHAIN_REL_QPN24, 0, 1, 0);
	assert_reloc(w, 1, RADDR + offsetof(struct mlx5_wqe_raddr_seg, raddr), CHAIN_REL_ADDR64,
		CHAIN_SYM_SCRATCH, 0, 9);
	assert_reloc(w, 1, RADDR + offsetof(struct mlx5_wqe_raddr_seg, rkey), CHAIN_REL_RKEY32,
		CHAIN_SYM_SCRATCH, 0, 0);
	assert_reloc(w, 1, DATA + offsetof(struct mlx5_wqe_data_seg, addr), CHAIN_REL_ADDR64,
		CHAIN_SYM_REGION, 1, 40);
	assert_reloc(w, 1, DATA + offsetof(struct mlx5_wqe_data_seg, lkey), CHAIN_REL_LKEY32,
		CHAIN_SYM_REGION, 1, 0);
	memcpy(&seg, wqe + DATA, sizeof(seg));
	assert_int_equal(be32toh(seg.byte_count), 4);
	assert_int_equal(w->queue[1].wqebbs, 2);
	assert_int_equal(w->queue[1].cqes, 1);

	/* three segments: two WQEBBs, and what follows moves on */
	wqe = one(&k, &r,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {WORD("a", 0, 3), WORD("c", 0, 5), WORD("c", 8, 7)}});
	assert_ctrl(wqe, 0, MLX5_OPCODE_RDMA_READ, 5, 0);
	memcpy(&seg, wqe + DATA + 2 * sizeof(seg), sizeof(seg));
	assert_int_equal(be32toh(seg.byte_count), 7);
	assert_reloc(r, 1, DATA + 2 * sizeof(seg) + 8, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 16 + 8);
	assert_int_equal(r->queue[1].wqebbs, 3);
	assert_memory_equal(r->queue[1].starts, ((uint8_t[]){1, 0, 1}), 3);
	assert_int_equal(r->queue[0].head_wqebbs, 2);
	assert_int_equal(r->queue[1].head_wqebbs, 0);
	assert_int_equal(r->max_rd_atomic, 1);
}

enum { DONE = 2 * CHAIN_WQEBB }; /* in queue 0: the head comes first */

static void the_answer(void **state)
{
	IMAGE *img = NULL;
	struct sketch k;
	const uint8_t *wqe;

	(void)state;
	sketch(&k, NULL, 0);
	img = built(&k);
	wqe = img->queue[0].wqes + DONE;
	assert_ctrl(wqe, 0, MLX5_OPCODE_RDMA_WRITE_IMM, 3, MLX5_WQE_CTRL_CQ_UPDATE);
	assert_reloc(img, 0, DONE + offsetof(struct mlx5_wqe_ctrl_seg, imm), CHAIN_REL_SEQ32, 0, 0, 0);
	assert_reloc(img, 0, DONE + 16, CHAIN_REL_ADDR64, CHAIN_SYM_SLOT, 0, 0);
	assert_reloc(img, 0, DONE + 24, CHAIN_REL_RKEY32, CHAIN_SYM_SLOT, 0, 0);
	assert_int_equal(img->queue[0].wqebbs, 3);
	assert_int_equal(img->queue[0].head_wqebbs, 2);
	assert_int_equal(img->queue[0].cqes, 1);
	/* words start at multiples of 8, the first with its bytes */
	assert_int_equal(img->scratch_size, 32);
	assert_memory_equal(img->scratch_init, "initial\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(img->n_copy, 1);
	assert_int_equal(img->n_atomic, 0);
	assert_int_equal(img->n_sync, 3);
	assert_int_equal(img->nlabels, 4);
	assert_string_equal(img->labels[0].name, "wait");
	assert_string_equal(img->labels[2].name, "done");
	assert_int_equal(img->labels[2].wqebb, 2);
	assert_string_equal(img->labels[3].name, "answer");
	assert_int_equal(img->labels[3].wqebb, 0);
}

static void nop_and_send(void **state)
{
	struct sketch k;
	IMAGE *img = NULL, *send = NULL, *imm = NULL;
	const uint8_t *wqe = one(&k, &img, (struct chain_step){.queue = 1, .verb = CHAIN_NOP});

	(void)state;
	assert_ctrl(wqe, 0, MLX5_OPCODE_NOP, 1, 0);
	assert_int_equal(wqe_get(wqe + 16, 8), 0);

	sketch(&k, NULL, 0);
	k.steps[3] = (struct chain_step){
		.queue = 0, .verb = CHAIN_SEND, .local = {REGION(0, 8, 24), WORD("a", 0, 8)}};
	send = built(&k);
	wqe = send->queue[0].wqes + DONE;
	assert_ctrl(wqe, 0, MLX5_OPCODE_SEND, 3, 0);
	assert_int_equal(wqe_get(wqe + 16, 4), 24);
	assert_reloc(send, 0, DONE + 16 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_REGION, 0, 8);
	assert_reloc(send, 0, DONE + 32 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 0);

	sketch(&k, NULL, 0);
	k.steps[3].flags = CHAIN_DORMANT;
	k.steps[3].imm = 0x01020304;
	imm = built(&k);
	assert_ctrl(imm->queue[0].wqes + DONE, 0, MLX5_OPCODE_NOP, 3, 0);
	assert_int_equal(wqe_get(imm->queue[0].wqes + DONE + 12, 4), 0x01020304);
}

static void atomics(void **state)
{
	IMAGE *cas = NULL, *fa = NULL, *mcas = NULL, *mfa = NULL;
	struct sketch k;
	const uint8_t *wqe;
	struct mlx5_wqe_atomic_seg seg;

	(void)state;
	wqe = one(&k, &cas,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_CAS,
			.flags = CHAIN_FENCE,
			.remote = WORD("a", 0, 0),
			.compare = 0x1122334455667788,
			.swap = 0x99});
	assert_ctrl(wqe, 0, MLX5_OPCODE_ATOMIC_CS, 4, MLX5_WQE_CTRL_FENCE);
	memcpy(&seg, wqe + 32, sizeof(seg));
	assert_int_equal(be64toh(seg.compare), 0x1122334455667788);
	assert_int_equal(be64toh(seg.swap_add), 0x99);
	/* the old value goes to a word of its own behind the others */
	assert_int_equal(wqe_get(wqe + 48, 4), 8);
	assert_int_equal(cas->scratch_size, 40);
	assert_reloc(cas, 1, 48 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 32);
	assert_reloc(cas, 1, 48 + 4, CHAIN_REL_LKEY32, CHAIN_SYM_SCRATCH, 0, 0);
	assert_int_equal(cas->n_atomic, 1);

	wqe = one(&k, &fa,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_FETCH_ADD,
			.remote = REGION(0, 16, 0),
			.add = 5,
			.local = {WORD("c", 8, 8)}});
	assert_ctrl(wqe, 0, MLX5_OPCODE_ATOMIC_FA, 4, 0);
	memcpy(&seg, wqe + 32, sizeof(seg));
	assert_int_equal(be64toh(seg.swap_add), 5);
	assert_int_equal(seg.compare, 0);
	assert_reloc(fa, 1, 16, CHAIN_REL_ADDR64, CHAIN_SYM_REGION, 0, 16);
	assert_reloc(fa, 1, 48 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 24);
	assert_int_equal(fa->scratch_size, 32);

	wqe = one(&k, &mcas,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_MASKED_CAS,
			.remote = WORD("a", 0, 0),
			.compare = 1,
			.swap = 2,
			.compare_mask = 3,
			.swap_mask = 4});
	assert_ctrl(wqe, 0x09, MLX5_OPCODE_ATOMIC_MASKED_CS, 5, 0);
	assert_int_equal(wqe_get(wqe + 32, 8), 2);
	assert_int_equal(wqe_get(wqe + 40, 8), 1);
	assert_int_equal(wqe_get(wqe + 48, 8), 4);
	assert_int_equal(wqe_get(wqe + 56, 8), 3);
	assert_int_equal(wqe_get(wqe + 64, 4), 8);
	assert_int_equal(mcas->queue[1].wqebbs, 3);

	wqe = one(&k, &mfa,
		(struct chain_step){.queue = 1,
			.verb = CHAIN_MASKED_FETCH_ADD,
			.remote = WORD("a", 0, 0),
			.add = 7,
			.boundary = 0x80});
	assert_ctrl(wqe, 0x09, MLX5_OPCODE_ATOMIC_MASKED_FA, 4, 0);
	assert_int_equal(wqe_get(wqe + 32, 8), 7);
	assert_int_equal(wqe_get(wqe + 40, 8), 0x80);
}

static void synchronization(void **state)
{
	static const struct chain_step mid[] = {
		{.label = "r0",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = REGION(0, 0, 0),
			.local = {WORD("a", 0, 8)}},
		{.label = "r1",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_SIGNALLED,
			.remote = REGION(0, 0, 0),
			.local = {WORD("c", 0, 8)}},
		{.label = "w", .queue = 1, .verb = CHAIN_WAIT, .until = "r1"},
		{.label = "e", .queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "nop"},
		{.label = "nop", .queue = 0, .verb = CHAIN_NOP},
	};
	IMAGE *img = NULL;
	struct sketch k;
	const uint8_t *w;

	(void)state;
	sketch(&k, mid, 5);
	img = built(&k);
	w = img->queue[0].wqes;
	assert_ctrl(w, 0, OPCODE_WAIT, 2, 0);
	assert_reloc(img, 0, 24, CHAIN_REL_WAIT, 0, CHAIN_CQ_RECV, 0);
	assert_reloc(img, 0, 28, CHAIN_REL_CQN32, 0, CHAIN_CQ_RECV, 0);
	assert_ctrl(w + 64, 0, OPCODE_SEND_EN, 2, 0);
	assert_reloc(img, 0, 64 + 24, CHAIN_REL_ENABLE, 0, 1, img->queue[1].wqebbs);
	assert_reloc(img, 0, 64 + 28, CHAIN_REL_QPN32, 0, 1, 0);
	/* r1's is the second CQE of the instance: number 1 */
	assert_reloc(img, 1, 2 * 64 + 24, CHAIN_REL_WAIT, 0, 1, 1);
	assert_reloc(img, 1, 2 * 64 + 28, CHAIN_REL_CQN32, 0, 1, 0);
	assert_int_equal(img->queue[1].cqes, 2);
	assert_reloc(img, 1, 3 * 64 + 24, CHAIN_REL_ENABLE, 0, 0, 3);
	assert_reloc(img, 1, 4 * 64 + 24, CHAIN_REL_ENABLE, 0, 0, 6);
	assert_int_equal(img->max_rd_atomic, 2);
}

/* Operands are aligned to 16, in every instance, and the result has one operand's bytes whatever their number
 */
static void calculations(void **state)
{
	static const struct chain_step mid[] = {
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("c", 0, 0),
			.local = {WORD("pair", 0, 48)}},
		{.queue = 1, .verb = CHAIN_FETCH_ADD, .remote = REGION(0, 0, 0), .add = 1},
	};
	IMAGE *img = NULL;
	struct sketch k;
	const uint8_t *w;

	(void)state;
	sketch(&k, mid, 2);
	k.d.nwords = 4;
	img = built(&k);
	w = img->queue[1].wqes;
	assert_int_equal(w[WQE_OPMOD], WQE_CALC_MAXLOC);
	assert_int_equal(w[WQE_OPCODE], WQE_OP_WRITE);
	assert_int_equal(w[WQE_DSCOUNT], 3);
	assert_int_equal(wqe_get32(w + WQE_RDMA_SGE), 48);
	/* "a" at 0, "b" at 8, "c" at 16, "pair" at 32, an old value nobody wants at 80 */
	assert_reloc(img, 1, WQE_RADDR, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 16);
	assert_reloc(img, 1, WQE_RDMA_SGE + WQE_SGE_ADDR, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 0, 32);
	assert_int_equal(img->scratch_size, 96);
}

static void assert_recv(
	const struct chain_recv_sge *r, unsigned sym, unsigned index, uint32_t len, uint32_t offset)
{
	assert_int_equal(r->sym, sym);
	assert_int_equal(r->index, index);
	assert_int_equal(r->len, len);
	assert_int_equal(r->offset, offset);
}

static void patches_and_arguments(void **state)
{
	static const struct chain_step mid[] = {
		{.label = "r",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("hit", CHAIN_F_LOCAL_ADDR, 3, 5), FIELD("c", CHAIN_F_COMPARE, 0, 8),
				FIELD("hit", CHAIN_F_OPCODE, 0, 1)}},
		{.label = "c",
			.queue = 1,
			.verb = CHAIN_CAS,
			.flags = CHAIN_FENCE,
			.remote = FIELD("hit", CHAIN_F_CTRL, 0, 0)},
		{.label = "hit",
			.queue = 0,
			.verb = CHAIN_WRITE,
			.flags = CHAIN_DORMANT,
			.remote = SLOT(64),
			.local = {REGION(1, 0, 1)}},
	};
	IMAGE *img = NULL;
	struct sketch k;

	(void)state;
	sketch(&k, mid, 3);
	k.args[0] = (struct chain_place)FIELD("r", CHAIN_F_REMOTE_ADDR, 2, 6);
	k.args[1] = (struct chain_place)WORD("b", 1, 3);
	k.args[2] = (struct chain_place)FIELD("c", CHAIN_F_SWAP, 1, 7);
	k.d.nargs = 3;
	img = built(&k);
	/* hit comes after the head of queue 0, c after a READ of two WQEBBs */
	assert_reloc(img, 1, 32 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_QUEUE, 0, 2 * 64 + 32 + 8 + 3);
	assert_reloc(img, 1, 48 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_QUEUE, 1, 2 * 64 + 40);
	assert_reloc(img, 1, 64 + 8, CHAIN_REL_ADDR64, CHAIN_SYM_QUEUE, 0, 2 * 64 + 3);
	assert_reloc(img, 1, 2 * 64 + 16, CHAIN_REL_ADDR64, CHAIN_SYM_QUEUE, 0, 2 * 64);
	assert_reloc(img, 1, 2 * 64 + 24, CHAIN_REL_RKEY32, CHAIN_SYM_QUEUE, 0, 0);
	assert_int_equal(img->nrecv, 3);
	assert_int_equal(img->arg_len, 16);
	assert_recv(&img->recv[0], CHAIN_SYM_QUEUE, 1, 6, 16 + 2);
	assert_recv(&img->recv[1], CHAIN_SYM_SCRATCH, 0, 3, 9);
	assert_recv(&img->recv[2], CHAIN_SYM_QUEUE, 1, 7, 2 * 64 + 33);
	/* the request chooses 6 low bytes in region 0, the READ 5 in region 1 */
	assert_int_equal(img->region_bits[0], 48);
	assert_int_equal(img->region_bits[1], 40);
}

/* What is read or compared in an address is an offset, too */
static void addresses_that_are_read(void **state)
{
	static const struct {
		struct chain_place field;
		enum chain_verb verb;
		unsigned bits;
	} reads[] = {
		{FIELD("hit", CHAIN_F_LOCAL_ADDR, 3, 5), CHAIN_READ, 40},
		{FIELD("hit", CHAIN_F_LOCAL_ADDR, 0, 8), CHAIN_READ, 40},
		{FIELD("hit", CHAIN_F_LOCAL_ADDR, 7, 1), CHAIN_READ, 8},
		{FIELD("hit", CHAIN_F_LOCAL_ADDR, 0, 8), CHAIN_MASKED_CAS, 40},
		{FIELD("hit", CHAIN_F_LOCAL_ADDR, 0, 8), CHAIN_WRITE, 0},
		{FIELD("hit", CHAIN_F_REMOTE_ADDR, 0, 8), CHAIN_READ, 0},
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(reads); i++) {
		const struct chain_step mid[] = {
			{.queue = 1,
				.verb = reads[i].verb,
				.remote = reads[i].field,
				.local = {WORD("a", 0, reads[i].field.len)}},
			{.label = "hit",
				.queue = 0,
				.verb = CHAIN_WRITE,
				.remote = SLOT(64),
				.local = {REGION(1, 0, 1)}},
		};
		struct sketch k;

		IMAGE *img = NULL;

		sketch(&k, mid, 2);
		img = built(&k);
		assert_int_equal(img->region_bits[1], reads[i].bits);
	}
}

struct wrong {
	struct fault why;
	struct chain_step step;
	struct chain_place arg;
};

static const struct wrong wrongs[] = {
	{WRONG(NO_VERB, 2, NO_STEP), {.queue = 1, .verb = 77}, {0}},
	{WRONG(NO_QUEUE, 2, NO_STEP), {.queue = 2, .verb = CHAIN_NOP}, {0}},
	{WRONG(SAME_LABEL, NO_STEP, NO_STEP), {.queue = 1, .label = "done", .verb = CHAIN_NOP}, {0}},
	{WRONG(NO_DATA, 2, NO_STEP), {.queue = 1, .verb = CHAIN_NOP, .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(READ_NOTHING, 2, NO_STEP), {.queue = 1, .verb = CHAIN_READ, .remote = WORD("a", 0, 0)}, {0}},
	{WRONG(NO_REMOTE, 2, NO_STEP), {.queue = 1, .verb = CHAIN_NOP, .remote = WORD("a", 0, 0)}, {0}},
	{WRONG(NO_PLACE, 2, NO_STEP), {.queue = 1, .verb = CHAIN_READ, .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(NO_WORD, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_READ, .remote = REGION(0, 0, 0), .local = {WORD("z", 0, 1)}}, {0}},
	{WRONG(WORD_END, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_READ, .remote = REGION(0, 0, 0), .local = {WORD("c", 9, 8)}}, {0}},
	{WRONG(NO_REGION, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_READ, .remote = REGION(2, 0, 0), .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(SEGMENT_EMPTY, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_READ, .remote = REGION(0, 0, 0), .local = {WORD("a", 0, 0)}}, {0}},
	{WRONG(NO_STEP, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("gone", CHAIN_F_OPCODE, 0, 1)}},
		{0}},
	{WRONG(NO_FIELD, 2, 4),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("done", CHAIN_F_COMPARE, 0, 1)}},
		{0}},
	{WRONG(FIELD_END, 2, 4),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("done", CHAIN_F_LOCAL_LEN, 3, 2)}},
		{0}},
	{WRONG(NO_SEGMENT, 2, 4),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {{.kind = CHAIN_AT_FIELD,
				.name = "done",
				.field = CHAIN_F_LOCAL_ADDR,
				.sge = 1,
				.len = 8}}},
		{0}},
	{WRONG(WRITES_KEY, 2, 4),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {FIELD("done", CHAIN_F_LOCAL_KEY, 0, 4)}},
		{0}},
	{WRONG(WRITES_KEY, 2, 4),
		{.queue = 1,
			.verb = CHAIN_WRITE,
			.remote = FIELD("done", CHAIN_F_REMOTE_KEY, 0, 0),
			.local = {WORD("a", 0, 4)}},
		{0}},
	{WRONG(ATOMIC_BYTES, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_CAS, .remote = WORD("a", 0, 0), .local = {WORD("c", 0, 4)}}, {0}},
	{WRONG(ATOMIC_ALIGN, 2, NO_STEP), {.queue = 1, .verb = CHAIN_CAS, .remote = WORD("c", 4, 0)}, {0}},
	{WRONG(CALC_OPERANDS, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("c", 0, 0),
			.local = {WORD("pair", 0, 8)}},
		{0}},
	{WRONG(CALC_OPERANDS, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("c", 0, 0),
			.local = {WORD("pair", 8, 16)}},
		{0}},
	{WRONG(CALC_OPERANDS, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_CALC_MAX, .remote = WORD("c", 0, 0), .local = {REGION(0, 0, 16)}},
		{0}},
	{WRONG(CALC_OPERANDS, 2, NO_STEP), {.queue = 1, .verb = CHAIN_CALC_MAX, .remote = WORD("c", 0, 0)},
		{0}},
	{WRONG(CALC_RESULT, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("pair", 16, 0),
			.local = {WORD("pair", 0, 32)}},
		{0}},
	{WRONG(CALC_RESULT, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = REGION(0, 0, 0),
			.local = {WORD("pair", 0, 32)}},
		{0}},
	{WRONG(CALC_RESULT, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("pair", 4, 0),
			.local = {WORD("pair", 32, 16)}},
		{0}},
	{WRONG(WORD_END, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_CALC_MAX,
			.remote = WORD("pair", 40, 0),
			.local = {WORD("pair", 0, 16)}},
		{0}},
	{WRONG(LOCAL_SLOT, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = REGION(0, 0, 0),
			.local = {{.kind = CHAIN_AT_SLOT, .len = 1}}},
		{0}},
	{WRONG(SLOT_QUEUE, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_WRITE, .remote = SLOT(0), .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(READS_CLIENT, 2, NO_STEP),
		{.queue = 0, .verb = CHAIN_READ, .remote = SLOT(0), .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(ONLY_SLOT, 2, NO_STEP),
		{.queue = 0, .verb = CHAIN_WRITE, .remote = WORD("a", 0, 0), .local = {WORD("a", 0, 1)}},
		{0}},
	{WRONG(NO_RECEIVER, 2, NO_STEP), {.queue = 1, .verb = CHAIN_SEND, .local = {WORD("a", 0, 1)}}, {0}},
	{WRONG(NO_STEP, 2, NO_STEP), {.queue = 1, .verb = CHAIN_WAIT, .until = "gone"}, {0}},
	{WRONG(WAIT_UNSIGNALLED, 2, 3), {.queue = 1, .verb = CHAIN_WAIT, .until = "answer"}, {0}},
	{WRONG(WAITS_FOR_LATER, 2, 2),
		{.label = "self", .queue = 1, .verb = CHAIN_WAIT, .flags = CHAIN_SIGNALLED, .until = "self"},
		{0}},
	{WRONG(WAIT_REPLY, 2, 4), {.queue = 1, .verb = CHAIN_WAIT, .until = "done"}, {0}},
	{WRONG(ENABLES_NO_STEP, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .through = "answer"}, {0}},
	{WRONG(ENABLES_NO_HEAD, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_NEXT_HEAD}, {0}},
	{WRONG(NO_QUEUE, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 9, .upto = CHAIN_UPTO_END}, {0}},
	{WRONG(ENABLED_BEFORE, 3, NO_STEP),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 0, .upto = CHAIN_UPTO_NEXT_HEAD}, {0}},
	{WRONG(ENABLED_BEFORE, 2, NO_STEP),
		{.queue = 1, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END}, {0}},
	{WRONG(NO_VERB, 2, NO_STEP), {.queue = 1, .verb = CHAIN_RECV_EN, .target = 0}, {0}},
	{WRONG(ARG_EMPTY, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP}, WORD("a", 0, 0)},
	{WRONG(ARG_PLACE, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP}, REGION(0, 0, 1)},
	{WRONG(ARG_FIELD, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_OPCODE, 0, 1)},
	{WRONG(ARG_FIELD, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_IMM, 0, 1)},
	{WRONG(ARG_FIELD, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_LOCAL_LEN, 0, 1)},
	{WRONG(ARG_FIELD, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("answer", CHAIN_F_INDEX, 0, 1)},
	{WRONG(ARG_ADDRESS, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_LOCAL_ADDR, 0, 8)},
	{WRONG(ARG_ADDRESS, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_LOCAL_ADDR, 1, 3)},
	{WRONG(ARG_ADDRESS, ARGUMENT(0), NO_STEP), {.queue = 1, .verb = CHAIN_NOP},
		FIELD("done", CHAIN_F_REMOTE_ADDR, 7, 1)},
};

static void assert_refused(struct sketch *k, struct fault why)
{
	struct chain_image *img = NULL;

	assert_int_equal(chain_build(&k->d, &img, &k->err), CHAIN_REFUSED);
	assert_null(img);
	assert_fault(&k->err, why);
}

static void what_is_wrong_is_refused(void **state)
{
	struct sketch k;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		sketch(&k, &wrongs[i].step, 1);
		k.d.nwords += wrongs[i].step.verb == CHAIN_CALC_MAX; /* "pair" */
		k.args[0] = wrongs[i].arg;
		k.d.nargs = wrongs[i].arg.kind != CHAIN_AT_NONE;
		assert_refused(&k, wrongs[i].why);
	}
}

/* A CAS that publishes the payload, in region 1; the payload is in region 0 */
static const struct chain_step publish = {.label = "pub",
	.queue = 1,
	.verb = CHAIN_CAS,
	.remote = REGION(1, 8, 0),
	.local = {WORD("c", 0, 8)},
	.publishes = true,
	.extent = true};

static void a_payload_is_published(void **state)
{
	IMAGE *img = NULL;
	struct sketch k;

	(void)state;
	sketch(&k, &publish, 1);
	k.args[0] = (struct chain_place)WORD("a", 0, 5);
	k.d.nargs = 1;
	k.d.payload = (struct chain_payload){.max = 100000, .region = 0};
	img = built(&k);
	assert_int_equal(img->nrecv, 2);
	assert_int_equal(img->arg_len, 5);
	assert_recv(&img->recv[1], CHAIN_SYM_EXTENT, 0, 100000, 5);
	assert_int_equal(img->payload.max, 100000);
	assert_int_equal(img->payload.region, 0);
	assert_true(img->publish.there && img->publish.extent && !img->publish.swapped);
	assert_int_equal(img->publish.queue, 1);
	assert_int_equal(img->publish.offset, 0);
	assert_int_equal(img->publish.region, 1);
}

#define PUBLISHES(verb_, remote_, ...)                                                                       \
	{                                                                                                    \
		.queue = 1, .verb = (verb_), .remote = remote_, .publishes = true, __VA_ARGS__               \
	}
#define WORD_C .local = {WORD("c", 0, 8)}
static const struct wrong wrong_publishes[] = {
	{WRONG(PUBLISH_WAS, 2, NO_STEP), PUBLISHES(CHAIN_CAS, REGION(1, 8, 0), .local = {{0}}), {0}},
	{WRONG(PUBLISH_WAS, 2, NO_STEP), PUBLISHES(CHAIN_CAS, REGION(1, 8, 0), .local = {REGION(1, 16, 8)}),
		{0}},
	{WRONG(PUBLISH_CAS, 2, NO_STEP), PUBLISHES(CHAIN_MASKED_CAS, REGION(1, 8, 0), WORD_C), {0}},
	{WRONG(PUBLISH_CAS, 2, NO_STEP), PUBLISHES(CHAIN_WRITE, REGION(1, 8, 0), WORD_C), {0}},
	{WRONG(PUBLISH_CAS, 2, NO_STEP), PUBLISHES(CHAIN_CAS, WORD("a", 0, 0), WORD_C), {0}},
	{WRONG(NO_PAYLOAD, 2, NO_STEP), PUBLISHES(CHAIN_CAS, REGION(1, 8, 0), WORD_C, .extent = true), {0}},
	{WRONG(NO_PAYLOAD, 2, NO_STEP),
		{.queue = 1,
			.verb = CHAIN_READ,
			.remote = {.kind = CHAIN_AT_LENGTH},
			.local = {WORD("c", 0, 4)}},
		{0}},
};

static void what_cannot_be_published(void **state)
{
	const struct chain_step length = {.queue = 1,
		.verb = CHAIN_READ,
		.remote = {.kind = CHAIN_AT_LENGTH, .from = 1},
		.local = {WORD("c", 0, 4)}};
	struct chain_step both[2] = {publish, publish};
	struct sketch k;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong_publishes) / sizeof(wrong_publishes[0]); i++) {
		sketch(&k, &wrong_publishes[i].step, 1);
		assert_refused(&k, wrong_publishes[i].why);
	}
	both[1].label = "again";
	both[1].extent = false;
	sketch(&k, both, 2);
	k.d.payload.max = 1;
	assert_refused(&k, WRONG(PUBLISH_TWICE, 2, 3));
	both[0] = (struct chain_step){.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = {.kind = CHAIN_AT_LENGTH},
		.local = {WORD("c", 0, 4)}};
	both[1] = publish;
	sketch(&k, both, 2);
	k.d.payload.max = 1;
	assert_refused(&k, WRONG(LENGTH_PLACE, 2, NO_STEP));
	both[0] = length; /* behind its end */
	sketch(&k, both, 2);
	k.d.payload.max = 1;
	assert_refused(&k, WRONG(LENGTH_PLACE, 2, NO_STEP));
	sketch(&k, &publish, 1);
	k.d.payload = (struct chain_payload){.max = CHAIN_MAX_LOCATED + 1};
	assert_refused(&k, WRONG(PAYLOAD_BYTES, NO_STEP, NO_STEP));
	k.d.payload = (struct chain_payload){.max = 9, .region = 2};
	assert_refused(&k, WRONG(PAYLOAD_REGION, NO_STEP, NO_STEP));
	sketch(&k, &length, 1);
	k.d.payload.max = 9;
	assert_refused(&k, WRONG(PAYLOAD_UNUSED, NO_STEP, NO_STEP));
	k.d.payload.max = 0;
	k.d.loop = &(struct chain_desc){.steps = &publish, .nsteps = 1};
	assert_refused(&k, WRONG(PUBLISH_LOOP, 0, NO_STEP));
}

/* The sketch with its head in the code queue */
static void overlapping(struct sketch *k, const struct chain_step *mid, unsigned nmid)
{
	static const struct chain_queue_desc with_head[] = {{"reply", 0}, {"code", 2}, {"other", 0}};

	sketch(k, mid, nmid);
	k->steps[0].queue = k->steps[1].queue = 1;
	k->steps[1].upto = CHAIN_UPTO_NEXT_HEAD;
	k->steps[2 + nmid].upto = CHAIN_UPTO_END;
	k->d.queues = with_head;
}

/* An instance that may run for a RECV that was flushed changes nothing, and one queue enables each */
static void a_head_in_the_code(void **state)
{
	static const struct chain_step changes[] = {{.queue = 1,
							    .verb = CHAIN_WRITE,
							    .remote = REGION(0, 0, 0),
							    .local = {WORD("a", 0, 8)}},
		{.queue = 1, .verb = CHAIN_FETCH_ADD, .remote = REGION(0, 8, 0), .add = 1},
		{.queue = 1, .verb = CHAIN_READ, .remote = WORD("a", 0, 0), .local = {REGION(0, 0, 8)}}},
				       several[] = {{.queue = 1,
							    .verb = CHAIN_SEND_EN,
							    .target = 2,
							    .upto = CHAIN_UPTO_END},
					       {.queue = 2,
						       .verb = CHAIN_SEND_EN,
						       .target = 0,
						       .upto = CHAIN_UPTO_STEP,
						       .through = "first"},
					       {.label = "first", .queue = 0, .verb = CHAIN_NOP}};
	IMAGE *img = NULL;
	struct sketch k;

	(void)state;
	overlapping(&k, NULL, 0);
	img = built(&k);
	assert_int_equal(img->queue[0].head_wqebbs, 0);
	assert_int_equal(img->queue[1].head_wqebbs, 2);
	assert_true(img->queue[0].overlaps && !img->queue[1].overlaps);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		overlapping(&k, &changes[i], 1);
		assert_refused(&k, WRONG(HEAD_CHANGES, 2, NO_STEP));
	}
	overlapping(&k, several, 3);
	k.d.nqueues = 3;
	assert_refused(&k, WRONG(HEAD_ENABLES, 5, NO_STEP));
	overlapping(&k, NULL, 0);
	k.d.loop = &k.d;
	assert_refused(&k, WRONG(HEAD_LOOP, NO_STEP, NO_STEP));
}

static void wrong_shapes(void **state)
{
	static const struct chain_queue_desc headless[] = {{"reply", 0}, {"code", 0}},
					     headed[] = {{"reply", 2}, {"code", 1}},
					     tall[] = {{"reply", 9}, {"code", 0}},
					     three[] = {{"reply", 2}, {"code", 0}, {"idle", 0}};
	static const struct chain_word big[] = {{"a", 32768, NULL}, {"c", 8, NULL}};
	struct sketch k;

	(void)state;
	sketch(&k, NULL, 0);
	k.d.nqueues = 0;
	assert_refused(&k, WRONG(QUEUES, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.nsteps = CHAIN_MAX_STEPS + 1;
	assert_refused(&k, WRONG(STEPS, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.nargs = CHAIN_MAX_RECV_SGE + 1;
	assert_refused(&k, WRONG(ARGS, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.nregions = CHAIN_MAX_WINDOWS + 1;
	assert_refused(&k, WRONG(REGIONS, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.words = big;
	k.d.nwords = 2;
	assert_refused(&k, WRONG(SCRATCH_BYTES, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	for (unsigned i = 0; i < 16; i++)
		k.args[i] = (struct chain_place)WORD("c", 0, CHAIN_MAX_ARG / 16 + 1);
	k.d.nargs = 16;
	assert_refused(&k, WRONG(REQUEST_BYTES, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.queues = headless;
	k.steps[2].upto = CHAIN_UPTO_END;
	assert_refused(&k, WRONG(NO_HEAD, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.queues = headed;
	assert_refused(&k, WRONG(CODE_HEAD, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.queues = tall;
	assert_refused(&k, WRONG(HEAD_STEPS, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.d.queues = three;
	k.d.nqueues = 3;
	assert_refused(&k, WRONG(QUEUE_EMPTY, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.steps[0].verb = CHAIN_NOP;
	assert_refused(&k, WRONG(HEAD_START, 0, NO_STEP));
	sketch(&k, NULL, 0);
	k.steps[2].upto = CHAIN_UPTO_END;
	assert_refused(&k, WRONG(NEXT_HEAD, NO_STEP, NO_STEP));
	sketch(&k, NULL, 0);
	k.steps[1] = (struct chain_step){.queue = 0, .verb = CHAIN_NOP};
	assert_refused(&k, WRONG(NEVER_ENABLED, 2, NO_STEP));
	sketch(&k, NULL, 0);
	k.args[0] = (struct chain_place){
		.kind = CHAIN_AT_FIELD, .name = "head", .field = CHAIN_F_INDEX, .len = 4};
	k.d.nargs = 1;
	k.steps[0].label = "head";
	assert_refused(&k, WRONG(WRITES_HEAD, ARGUMENT(0), 0));
	sketch(&k, NULL, 0);
	k.args[0] = (struct chain_place)WORD("a", 4, 4);
	k.args[1] = (struct chain_place)WORD("c", 0, 4);
	k.args[2] = (struct chain_place)WORD("a", 7, 2);
	k.d.nargs = 3;
	assert_refused(&k, WRONG(ARGS_OVERLAP, ARGUMENT(2), ARGUMENT(0)));
}

/* chain_build(), which hands out an image only when it succeeds */
static int build_or_nothing(const struct chain_desc *d, struct chain_image **img)
{
	struct chain_error err;
	int r = chain_build(d, img, &err);

	if (r)
		assert_null(*img);
	return r;
}

static void no_memory(void **state)
{
	struct sketch k;
	IMAGE *img = NULL;
	/* a word that is changed has to be restored */
	const struct chain_step add = {
		.queue = 1, .verb = CHAIN_FETCH_ADD, .add = 1, .remote = WORD("a", 0, 8)};

	(void)state;
	sketch(&k, &add, 1);
	NOMEM_TRY(-ENOMEM, build_or_nothing(&k.d, &img));
	assert_int_equal(nomem_result, 0);
	assert_int_not_equal(img->nrestores, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(the_answer),
		cmocka_unit_test(nop_and_send),
		cmocka_unit_test(atomics),
		cmocka_unit_test(synchronization),
		cmocka_unit_test(calculations),
		cmocka_unit_test(patches_and_arguments),
		cmocka_unit_test(addresses_that_are_read),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(a_payload_is_published),
		cmocka_unit_test(what_cannot_be_published),
		cmocka_unit_test(a_head_in_the_code),
		cmocka_unit_test(wrong_shapes),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
