/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys over keys: lists, strided pieces, how they are filled, and what they refuse. */
#include "softcx/hw/test-rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE = 4096, ANY = HW_LOCAL_WRITE | HW_REMOTE_READ | HW_REMOTE_WRITE | HW_REMOTE_ATOMIC };
enum { NEW_LEN = 1 << 0, NEW_KEY = 1 << 13, NEW_ACCESS = 0xf << 18, NEW_FREE = 1 << 29 }; /* mask of a UMR */

struct loop {
	struct rig_one o;
	uint8_t *src, *dst;
};

static void open_loop(struct loop *l, uint64_t seed)
{
	rig_one_open(&l->o, (struct hw_config){.seed = seed}, (struct hw_cq_attr){.log_size = 6},
		(struct rig_opt){0});
	l->src = rig_alloc(&l->o.rig, SPACE);
	l->dst = rig_alloc(&l->o.rig, SPACE);
	for (unsigned i = 0; i < SPACE; i++)
		l->src[i] = (uint8_t)(i * 7 + i / 256 + 1);
}

static uint32_t key_over(struct loop *l, const struct hw_piece *pieces, unsigned n, uint64_t iova)
{
	struct hw_indirect_attr attr = {
		.pdn = l->o.rig.pdn, .iova = iova, .access = ANY, .max = n, .n = n, .pieces = pieces};
	uint32_t key;

	for (unsigned i = 0; i < n; i++)
		attr.len += pieces[i].len;
	assert_int_equal(hw_indirect_create(l->o.rig.dev, &attr, &key), 0);
	return key;
}

/* One that UMR fills. */
static uint32_t empty_key(struct loop *l, unsigned max)
{
	const struct hw_indirect_attr attr = {.pdn = l->o.rig.pdn, .umr = true, .free = true, .max = max};
	uint32_t key;

	assert_int_equal(hw_indirect_create(l->o.rig.dev, &attr, &key), 0);
	return key;
}

static void drop(struct loop *l, uint32_t key)
{
	assert_int_equal(hw_mkey_destroy(l->o.rig.dev, key), 0);
}

/* A WRITE or READ of @len bytes between @local and @va of @rkey. */
static void access_by(struct loop *l, uint8_t op, void *local, uint32_t len, uint32_t rkey, uint64_t va)
{
	uint8_t *w = wqe_rdma(&l->o.q, op, local, len, NULL, SIG, 0);

	put64(w + 16, va);
	put32(w + 24, rkey);
	rig_one_go(&l->o);
}

static void connect_again(struct loop *l)
{
	rig_qp_to(&l->o.q, HW_RST);
	l->o.q.pi = l->o.q.rpi = 0;
	l->o.q.db[0] = l->o.q.db[1] = 0;
	rig_connect(&l->o.q, &l->o.q);
}

/* Every range of a key over four pieces, one of which is a key over two, as the target and the source. */
static void all_ranges(void **state)
{
	enum { LEN = 64, IOVA = 0x10001 };
	static const uint8_t none[SPACE];
	struct loop l;

	open_loop(&l, 1);
	const uint32_t k = l.o.rig.key;
	const uint64_t d = (uintptr_t)l.dst;
	const struct hw_piece inner[] = {{d + 1000, k, 5}, {d + 900, k, 20}};
	uint32_t nested = key_over(&l, inner, 2, 0);
	const struct hw_piece outer[] = {{d + 3, k, 16}, {2, nested, 22}, {d + 513, k, 1}, {d + 256, k, 25}};
	uint32_t key = key_over(&l, outer, 4, IOVA);
	uint8_t *place[LEN], *p = l.dst;
	unsigned n = 0;

	for (unsigned i = 0; i < 16; i++)
		place[n++] = p + 3 + i;
	for (unsigned i = 2; i < 5; i++)
		place[n++] = p + 1000 + i;
	for (unsigned i = 0; i < 19; i++)
		place[n++] = p + 900 + i;
	place[n++] = p + 513;
	for (unsigned i = 0; i < 25; i++)
		place[n++] = p + 256 + i;
	assert_int_equal(n, LEN);
	for (unsigned from = 0; from < LEN; from++) {
		for (unsigned len = 1; len <= LEN - from; len++) {
			uint8_t back[LEN] = {0};

			memset(l.dst, 0, SPACE);
			access_by(&l, WQE_OP_WRITE, l.src, len, key, IOVA + from);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			for (unsigned i = 0; i < len; i++) {
				assert_int_equal(*place[from + i], l.src[i]);
				back[i] = l.src[i];
			}
			memset(l.src + 2048, 0, LEN);
			access_by(&l, WQE_OP_READ, l.src + 2048, len, key, IOVA + from);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			assert_memory_equal(l.src + 2048, back, LEN);
			for (unsigned i = 0; i < len; i++)
				*place[from + i] = 0;
			assert_memory_equal(l.dst, none, SPACE); /* and nowhere else */
		}
	}
	access_by(&l, WQE_OP_WRITE, l.src, 2, key, IOVA + LEN - 1);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	drop(&l, nested);
	rig_one_close(&l.o);
}

/* As an lkey: what a SEND gathers and its RECV scatters; an atomic on one piece is one of the CPU's, too. */
static void local_and_atomic(void **state)
{
	struct loop l;

	open_loop(&l, 2);
	const uint32_t k = l.o.rig.key;
	const uint64_t s = (uintptr_t)l.src, d = (uintptr_t)l.dst;
	uint32_t from = key_over(&l, (struct hw_piece[]){{s + 100, k, 3}, {s + 50, k, 9}}, 2, 0);
	uint32_t to = key_over(&l, (struct hw_piece[]){{d + 8, k, 8}, {d, k, 8}}, 2, 0);
	uint64_t *word = (uint64_t *)(void *)(l.dst + 8);
	uint8_t *w, seg[16];

	put32(seg, 12);
	put32(seg + 4, to);
	put64(seg + 8, 0);
	rig_recv(&l.o.q, 1, l.dst, 12);
	memcpy(l.o.q.rq, seg, sizeof(seg));
	w = wqe_send(&l.o.q, WQE_OP_SEND, NULL, 12, SIG, 0);
	put32(w + 20, from);
	put64(w + 24, 0);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	rig_expect(&l.o.rcq, CQE_OP_RESP_SEND);
	assert_memory_equal(l.dst + 8, l.src + 100, 3);
	assert_memory_equal(l.dst + 11, l.src + 50, 5);
	assert_memory_equal(l.dst, l.src + 55, 4);
	*word = 41;
	w = wqe_atomic(&l.o.q, WQE_OP_FETCH_ADD, l.src, NULL, 1, 0, SIG);
	put64(w + 16, 0);
	put32(w + 24, to);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_int_equal(*word, 42);
	drop(&l, from);
	drop(&l, to);
	rig_one_close(&l.o);
}

/* ---- UMR -------------------------------------------------------------------------------- */

/* A UMR WQE for @key without its pieces: @octowords of them follow at the address returned. */
static uint8_t *put_umr(
	struct loop *l, uint32_t key, unsigned octowords, uint64_t mask, uint64_t len, unsigned access)
{
	uint8_t *w = wqe_raw(&l->o.q, WQE_OP_UMR, 0, (uint8_t)(8 + octowords), SIG, htobe32(key));

	w[16] = 0x80;
	put32(w + 20, octowords << 16);
	put64(w + 24, mask);
	w[64 + 2] = (uint8_t)access;
	put32(w + 68, 0xffffff00 | (key & 0xff));
	put64(w + 64 + 24, len);
	return w;
}

static void put_piece(uint8_t *at, uint32_t len, uint32_t key, uint64_t va)
{
	put32(at, len);
	put32(at + 4, key);
	put64(at + 8, va);
}

enum { USUAL = NEW_LEN | NEW_KEY | NEW_ACCESS | NEW_FREE, WRITES = 1 << 3 | 1 << 5 };

static void by_list(void **state)
{
	struct loop l;
	uint8_t *w;

	open_loop(&l, 3);
	uint32_t key = empty_key(&l, 4);

	access_by(&l, WQE_OP_WRITE, l.src, 8, key, 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS); /* it has no pieces yet */
	connect_again(&l);
	w = put_umr(&l, key, 4, USUAL, 16, WRITES);
	put_piece(w + 128, 8, l.o.rig.key, (uintptr_t)l.dst + 64);
	put_piece(w + 144, 8, l.o.rig.key, (uintptr_t)l.dst);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	access_by(&l, WQE_OP_WRITE, l.src, 16, key, 0);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_memory_equal(l.dst + 64, l.src, 8);
	assert_memory_equal(l.dst, l.src + 8, 8);
	w = put_umr(&l, key, 0, NEW_FREE | NEW_KEY, 0, 0);
	w[64] = 1 << 6; /* free again, as IBV_WR_LOCAL_INV makes it */
	w[16] |= 1 << 4 | 1 << 3;
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key, 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	rig_one_close(&l.o);
}

static void by_stride(void **state)
{
	enum { A = 5, B = 3, LAPS = 7, A_STEP = 11, B_STEP = 64 };
	struct loop l;
	uint8_t *w;

	open_loop(&l, 4);
	uint32_t key = empty_key(&l, 4);

	w = put_umr(&l, key, 4, USUAL, (A + B) * LAPS, WRITES) + 128;
	put32(w, A + B);
	put32(w + 4, 0x400);
	put32(w + 8, LAPS);
	put32(w + 12, 2);
	put_piece(w + 16, A_STEP << 16 | A, l.o.rig.key, (uintptr_t)l.dst + 1);
	put_piece(w + 32, B_STEP << 16 | B, l.o.rig.key, (uintptr_t)l.dst + 1000);
	rig_one_go(&l.o);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	for (unsigned from = 0; from < (A + B) * LAPS; from++) {
		memset(l.dst, 0, SPACE);
		access_by(&l, WQE_OP_WRITE, l.src + from, (A + B) * LAPS - from, key, from);
		rig_expect(&l.o.scq, CQE_OP_REQ);
		for (unsigned i = from; i < (A + B) * LAPS; i++) {
			unsigned lap = i / (A + B), at = i % (A + B);

			assert_int_equal(
				at < A ? l.dst[1 + lap * A_STEP + at] : l.dst[1000 + lap * B_STEP + at - A],
				l.src[i]);
		}
	}
	access_by(&l, WQE_OP_WRITE, l.src, 1, key, (A + B) * LAPS);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	drop(&l, key);
	rig_one_close(&l.o);
}

/* UMRs that end the queue. */
static void refused_umr(void **state)
{
	enum {
		GOOD,
		NOT_INLINE,
		SIGNATURE,
		MASK,
		TOO_LONG,
		TOO_MANY,
		VARIANT,
		NOT_FREE,
		NOT_UMR,
		OTHER_PD,
		CASES
	};

	for (int bad = GOOD; bad < CASES; bad++) {
		uint32_t key, other_pd;
		struct loop l;
		uint8_t *w;

		open_loop(&l, 5);
		key = empty_key(&l, bad == TOO_MANY ? 3 : 4);
		if (bad == NOT_UMR) {
			drop(&l, key);
			key = key_over(&l, (struct hw_piece[]){{(uintptr_t)l.dst, l.o.rig.key, 8}}, 1, 0);
		}
		if (bad == OTHER_PD) {
			struct hw_indirect_attr attr = {.umr = true, .free = true, .max = 4};

			drop(&l, key);
			assert_int_equal(hw_pd_alloc(l.o.rig.dev, &other_pd), 0);
			attr.pdn = other_pd;
			assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), 0);
		}
		if (bad == NOT_FREE) {
			put_umr(&l, key, 0, NEW_FREE, 0, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		w = put_umr(&l, key, 4, USUAL | (bad == MASK ? 1 << 12 : 0), 8, WRITES);
		for (unsigned i = 0; i < 4; i++)
			put_piece(w + 128 + 16 * i, 2, l.o.rig.key, (uintptr_t)l.dst);
		if (bad == NOT_INLINE)
			w[16] = 0;
		if (bad == SIGNATURE)
			w[23] = 4;
		if (bad == TOO_LONG)
			w[21] = 5;
		if (bad == VARIANT)
			w[71] ^= 1;
		if (bad == NOT_FREE)
			w[16] |= 1 << 5;
		rig_one_go(&l.o);
		if (bad == GOOD)
			rig_expect(&l.o.scq, CQE_OP_REQ);
		else
			rig_expect_error(&l.o.scq, bad <= TOO_LONG ? CQE_SYND_LOCAL_QP_OP : CQE_SYND_MW_BIND);
		drop(&l, key);
		if (bad == OTHER_PD)
			assert_int_equal(hw_pd_free(l.o.rig.dev, other_pd), 0);
		rig_one_close(&l.o);
	}
}

/* ---- refusals --------------------------------------------------------------------------- */

static void refused_access(void **state)
{
	enum { GOOD, NO_KEY, PIECE_RIGHT, RIGHT, BEYOND, PIECE_BEYOND, PIECE_GONE, ITSELF, CASES };

	for (int bad = GOOD; bad < CASES; bad++) {
		struct hw_mkey_attr attr = {.len = SPACE, .access = bad == PIECE_RIGHT ? 0 : HW_LOCAL_WRITE};
		struct hw_indirect_attr top = {
			.access = bad == RIGHT ? HW_REMOTE_READ : ANY, .max = 2, .n = 2};
		struct hw_piece pieces[2];
		uint32_t part, key;
		struct loop l;
		uint8_t *w;

		open_loop(&l, 6);
		attr.pdn = top.pdn = l.o.rig.pdn;
		attr.mem = &l.o.rig.mem;
		attr.mem_off = rig_off(&l.o.rig, l.dst);
		assert_int_equal(hw_mkey_create(l.o.rig.dev, &attr, &part), 0);
		pieces[0] = (struct hw_piece){8, part, 8};
		pieces[1] =
			(struct hw_piece){bad == PIECE_BEYOND ? SPACE - 7 : 64, bad == NO_KEY ? 0 : part, 8};
		top.pieces = pieces;
		top.len = bad == BEYOND ? 15 : 16;
		top.umr = bad == ITSELF;
		assert_int_equal(hw_indirect_create(l.o.rig.dev, &top, &key), 0);
		if (bad == PIECE_GONE)
			drop(&l, part);
		if (bad == ITSELF) {
			w = put_umr(&l, key, 4, 0, 0, 0);
			put_piece(w + 128, 8, part, 0);
			put_piece(w + 144, 8, key, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		access_by(&l, WQE_OP_WRITE, l.src, bad == ITSELF ? 9 : 16, key, 0);
		if (bad == GOOD || bad == ITSELF) { /* it leads to its first piece, */
			rig_expect(&l.o.scq, CQE_OP_REQ);
		} else {
			rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
		}
		if (bad == ITSELF) { /* or nowhere */
			put_piece(put_umr(&l, key, 4, 0, 0, 0) + 128, 16, key, 0);
			rig_one_go(&l.o);
			rig_expect(&l.o.scq, CQE_OP_REQ);
			access_by(&l, WQE_OP_WRITE, l.src, 1, key, 0);
			rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
		}
		drop(&l, key);
		if (bad != PIECE_GONE)
			drop(&l, part);
		rig_one_close(&l.o);
	}
}

/* HW_INDIRECTIONS keys lead to memory, one more does not. */
static void depth(void **state)
{
	uint32_t key[HW_INDIRECTIONS + 2];
	struct loop l;

	open_loop(&l, 7);
	key[0] = l.o.rig.key;
	for (unsigned i = 1; i < HW_INDIRECTIONS + 2; i++)
		key[i] = key_over(
			&l, (struct hw_piece[]){{i == 1 ? (uintptr_t)l.dst : 0, key[i - 1], 8}}, 1, 0);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key[HW_INDIRECTIONS], 0);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_memory_equal(l.dst, l.src, 8);
	access_by(&l, WQE_OP_WRITE, l.src, 8, key[HW_INDIRECTIONS + 1], 0);
	rig_expect_error(&l.o.scq, CQE_SYND_REMOTE_ACCESS);
	for (unsigned i = 1; i < HW_INDIRECTIONS + 2; i++)
		drop(&l, key[i]);
	rig_one_close(&l.o);
}

static void refused_keys(void **state)
{
	static const struct hw_piece two[2];
	struct hw_indirect_attr attr = {.max = 1};
	struct hw_mkey_attr direct = {.len = 8};
	uint32_t key;
	struct loop l;

	open_loop(&l, 8);
	attr.pdn = direct.pdn = l.o.rig.pdn;
	attr.max = 0;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.max = HW_MAX_PIECES + 1;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr = (struct hw_indirect_attr){.pdn = l.o.rig.pdn, .max = 1, .n = 2, .pieces = two};
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.n = 1;
	attr.pdn = 12345;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), -EINVAL);
	attr.pdn = l.o.rig.pdn;
	assert_int_equal(hw_indirect_create(l.o.rig.dev, &attr, &key), 0);
	direct.mem = &l.o.rig.mem;
	assert_int_equal(hw_mkey_change(l.o.rig.dev, key, &direct), -EINVAL);
	drop(&l, key);
	rig_one_close(&l.o);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranges),
		cmocka_unit_test(local_and_atomic),
		cmocka_unit_test(by_list),
		cmocka_unit_test(by_stride),
		cmocka_unit_test(refused_umr),
		cmocka_unit_test(refused_access),
		cmocka_unit_test(depth),
		cmocka_unit_test(refused_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
