/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The forms that WQEs take: opcodes of every transport, gather and scatter lists, inline data, WQEs that wrap
 * the ring, address vectors, RECVs.
 */
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

enum { SPACE = 8192 };

struct loop {
	struct rig_one o; /* first */
	uint8_t *src, *dst;
};

static void open_loop(struct loop *l, uint64_t seed, struct rig_opt opt)
{
	rig_one_open(&l->o, (struct hw_config){.seed = seed}, (struct hw_cq_attr){.log_size = 6}, opt);
	l->src = rig_alloc(&l->o.rig, SPACE);
	l->dst = rig_alloc(&l->o.rig, SPACE);
	for (unsigned i = 0; i < SPACE; i++)
		l->src[i] = (uint8_t)(i * 7 + i / 256 + 1);
}

static void go(struct loop *l)
{
	rig_one_go(&l->o);
}

/* Address of octoword @ds of the WQE that begins at WQEBB @at; the ring may wrap in between. */
static uint8_t *octoword(const struct rig_qp *q, uint16_t at, unsigned ds)
{
	return q->sq + ((at * 64u + ds * 16u) & (q->wqebbs * 64u - 1));
}

static void put_remote(struct loop *l, uint16_t at, const void *remote)
{
	put64(octoword(&l->o.q, at, 1), (uintptr_t)remote);
	put32(octoword(&l->o.q, at, 1) + 8, l->o.rig.key);
}

/* ---- opcodes ---------------------------------------------------------------------------- */

static bool has(enum hw_qp_type type, unsigned op)
{
	switch (op) {
	case WQE_OP_NOP:
	case WQE_OP_WAIT:
	case WQE_OP_SEND_EN:
	case WQE_OP_RECV_EN:
	case WQE_OP_LOCAL_INVAL:
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return true;
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
	case WQE_OP_UMR:
		return type != HW_UD;
	case WQE_OP_SEND_INVAL:
	case WQE_OP_READ:
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		return type == HW_RC;
	default: /* TSO, BIND_MW, SET_PSV, DUMP, MMO and what has no name */
		return false;
	}
}

/* An opcode that a transport lacks ends the queue: RC in ERR, the others in SQER, where only sending has
 * ended. */
static void foreign_opcodes(void **state)
{
	for (enum hw_qp_type type = HW_RC; type <= HW_UD; type++)
		for (unsigned op = 0; op < 256; op++) {
			struct loop l;
			uint16_t at;

			if (has(type, op))
				continue;
			open_loop(&l, op, (struct rig_opt){.type = type});
			at = l.o.q.pi;
			wqe_raw(&l.o.q, (uint8_t)op, 0, 4, SIG, 0);
			put_remote(&l, at, l.dst);
			put_seg(octoword(&l.o.q, at, 3), l.src, 8, l.o.rig.key);
			wqe_nop(&l.o.q, 1, SIG);
			go(&l);
			assert_int_equal(rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP)[56], op);
			rig_expect_error(&l.o.scq, CQE_SYND_FLUSH);
			assert_int_equal(hw_qp_state(l.o.q.qp), type == HW_RC ? HW_ERR : HW_SQER);
			rig_one_close(&l.o);
		}
}

/* Every opcode with packets, and the CQE of the other side. */
static void opcodes(void **state)
{
	static const struct {
		uint8_t op, cqe; /* cqe: of the receiver, 0: none */
	} t[] = {
		{WQE_OP_SEND, CQE_OP_RESP_SEND},
		{WQE_OP_SEND_IMM, CQE_OP_RESP_SEND_IMM},
		{WQE_OP_WRITE, 0},
		{WQE_OP_WRITE_IMM, CQE_OP_RESP_WRITE_IMM},
	};

	for (enum hw_qp_type type = HW_RC; type <= HW_UC; type++)
		for (size_t i = 0; i < COUNT(t); i++) {
			bool send = t[i].op == WQE_OP_SEND || t[i].op == WQE_OP_SEND_IMM;
			const uint8_t *cqe;
			struct loop l;

			open_loop(&l, i, (struct rig_opt){.type = type});
			rig_recv(&l.o.q, 1, l.dst, 100);
			if (send)
				wqe_send(&l.o.q, t[i].op, l.src, 77, SIG | SOL, 0x11223344);
			else
				wqe_rdma(&l.o.q, t[i].op, l.src, 77, l.dst, SIG | SOL, 0x11223344);
			go(&l);
			cqe = rig_expect(&l.o.scq, CQE_OP_REQ);
			assert_int_equal(cqe[56], t[i].op);
			assert_memory_equal(l.dst, l.src, 77);
			assert_int_equal(l.dst[77], 0);
			if (t[i].cqe) {
				cqe = rig_expect(&l.o.rcq, t[i].cqe);
				assert_int_equal(wqe_get32(cqe + 44), 77);
				assert_int_equal(
					wqe_get32(cqe + 36), t[i].op == WQE_OP_SEND ? 0 : 0x44332211);
				assert_true(cqe[63] & CQE_SOLICITED);
			}
			assert_null(rig_cq_next(&l.o.rcq));
			rig_one_close(&l.o);
		}
}

static void invalidate_locally(void **state)
{
	struct hw_mkey_attr attr = {.len = 64, .access = 15};
	struct loop l;
	uint32_t key;
	uint8_t *w;

	open_loop(&l, 1, (struct rig_opt){0});
	attr.pdn = l.o.rig.pdn;
	attr.mem = &l.o.rig.mem;
	attr.mem_off = rig_off(&l.o.rig, l.dst);
	assert_int_equal(hw_mkey_create(l.o.rig.dev, &attr, &key), 0);
	w = wqe_rdma(&l.o.q, WQE_OP_WRITE, l.src, 8, NULL, SIG, 0);
	put32(w + 24, key);
	wqe_raw(&l.o.q, WQE_OP_LOCAL_INVAL, 0, 1, SIG, htobe32(key));
	w = wqe_rdma(&l.o.q, WQE_OP_WRITE, NULL, 8, l.dst, SIG, 0);
	put32(w + 36, key);
	go(&l);
	rig_expect(&l.o.scq, CQE_OP_REQ);
	assert_int_equal(rig_expect(&l.o.scq, CQE_OP_REQ)[56], WQE_OP_LOCAL_INVAL);
	rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_PROT);
	assert_int_equal(hw_mkey_destroy(l.o.rig.dev, key), 0);
	rig_one_close(&l.o);

	open_loop(&l, 1, (struct rig_opt){0}); /* no such key */
	wqe_raw(&l.o.q, WQE_OP_LOCAL_INVAL, 0, 1, SIG, htobe32(key));
	go(&l);
	rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_PROT);
	rig_one_close(&l.o);
}

/* As libmlx5 builds it: shows @len bytes at @addr of @lkey under the variant of @rkey; @len 0: nothing any
 * more. */
static uint8_t *put_bind(
	struct loop *l, uint32_t window, uint32_t rkey, uint32_t lkey, const void *addr, uint32_t len)
{
	uint16_t at = l->o.q.pi;
	uint8_t *w = wqe_raw(&l->o.q, WQE_OP_UMR, 0, len ? 12 : 8, SIG, htobe32(window));

	memset(octoword(&l->o.q, at, 4), 0, 64);
	memset(octoword(&l->o.q, at, 8), 0, 64);
	w[16] = 0x90; /* inline, translation */
	w[21] = len ? 4 : 0;
	if (!len)
		octoword(&l->o.q, at, 4)[0] = 0x40; /* free */
	octoword(&l->o.q, at, 4)[2] = 0x70;         /* remote read, write, atomic */
	put32(octoword(&l->o.q, at, 4) + 4, 0xffffff00 | (rkey & 0xff));
	put64(octoword(&l->o.q, at, 5), (uintptr_t)addr);
	put64(octoword(&l->o.q, at, 5) + 8, len);
	put32(octoword(&l->o.q, at, 8), len);
	put32(octoword(&l->o.q, at, 8) + 4, lkey);
	put64(octoword(&l->o.q, at, 8) + 8, (uintptr_t)addr);
	return w;
}

/* Refused binds, and accesses beyond a window. */
static void windows(void **state)
{
	enum { GOOD, LKEY, BEYOND, NO_WINDOW, NO_RIGHT, NOT_FREE, OUTSIDE, AS_LKEY, FREED, OTHER_QP, CASES };

	for (int bad = GOOD; bad < CASES; bad++) {
		struct hw_mkey_attr attr = {.len = 256, .access = HW_LOCAL_WRITE};
		uint32_t key, window, rkey;
		struct rig_qp other;
		struct loop l;
		uint8_t *w;

		open_loop(&l, (uint64_t)bad, (struct rig_opt){0});
		rig_qp_new(&l.o.rig, &other, &l.o.scq, &l.o.scq);
		rig_connect(&other, &other);
		attr.pdn = l.o.rig.pdn;
		attr.mem = &l.o.rig.mem;
		attr.iova = (uintptr_t)l.dst;
		attr.mem_off = rig_off(&l.o.rig, l.dst);
		attr.access = bad == NO_RIGHT ? 0 : HW_LOCAL_WRITE;
		assert_int_equal(hw_mkey_create(l.o.rig.dev, &attr, &key), 0);
		assert_int_equal(hw_mw_create(l.o.rig.dev, l.o.rig.pdn, 2, &window), 0);
		rkey = (window & ~0xffu) | 0x77;
		if (bad == NOT_FREE) {
			put_bind(&l, window, rkey, key, l.dst, 8);
			go(&l);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		w = put_bind(&l, bad == NO_WINDOW ? key : window, rkey, bad == LKEY ? window : key,
			l.dst + (bad == BEYOND ? 200 : 64), 64);
		if (bad == NOT_FREE)
			w[16] |= 0x20;
		go(&l);
		if (bad != GOOD && bad <= NOT_FREE) {
			rig_expect_error(&l.o.scq, CQE_SYND_MW_BIND);
			goto done;
		}
		rig_expect(&l.o.scq, CQE_OP_REQ);
		assert_int_equal(hw_mkey_destroy(l.o.rig.dev, key), -EBUSY);
		if (bad == FREED) {
			put_bind(&l, rkey, rkey, 0, NULL, 0);
			go(&l);
			rig_expect(&l.o.scq, CQE_OP_REQ);
		}
		w = wqe_rdma(bad == OTHER_QP ? &other : &l.o.q, WQE_OP_WRITE, l.src, 8,
			l.dst + (bad == OUTSIDE ? 63 : 120), SIG, 0);
		put32(w + 24, rkey);
		if (bad == AS_LKEY)
			put32(w + 36, rkey);
		rig_ring(&other);
		go(&l);
		if (bad == GOOD) {
			rig_expect(&l.o.scq, CQE_OP_REQ);
			assert_memory_equal(l.dst + 120, l.src, 8);
		} else {
			rig_expect_error(
				&l.o.scq, bad == AS_LKEY ? CQE_SYND_LOCAL_PROT : CQE_SYND_REMOTE_ACCESS);
		}
	done:
		rig_destroy(&other);
		assert_int_equal(hw_mw_destroy(l.o.rig.dev, window >> 8), 0);
		assert_int_equal(hw_mw_destroy(l.o.rig.dev, window >> 8), -EINVAL);
		assert_int_equal(hw_mkey_destroy(l.o.rig.dev, key), 0);
		rig_one_close(&l.o);
	}
}

/* The masks and sizes that the opmod of atomics selects: 4 and 8 bytes, and nothing else. */
static void atomic_opmods(void **state)
{
	static const uint8_t ops[] = {
		WQE_OP_CAS, WQE_OP_FETCH_ADD, WQE_OP_MASKED_CAS, WQE_OP_MASKED_FETCH_ADD};

	for (size_t i = 0; i < sizeof(ops); i++)
		for (unsigned opmod = 0; opmod < 256; opmod++) {
			bool masked = ops[i] >= WQE_OP_MASKED_CAS;
			struct loop l;
			uint8_t *w;

			if (masked ? opmod == 8 || opmod == 9 : opmod == 0)
				continue;
			open_loop(&l, opmod, (struct rig_opt){0});
			w = wqe_masked_cas8(&l.o.q, l.src, l.dst, 0, 0, 0, 0, SIG);
			w[0] = (uint8_t)opmod;
			w[3] = ops[i];
			go(&l);
			rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP);
			rig_one_close(&l.o);
		}
}

/* WAIT on data and on time have capabilities of their own, which the device does not claim. */
static void wait_opmods(void **state)
{
	for (uint8_t opmod = 1; opmod < 4; opmod++) {
		struct loop l;
		uint8_t *w;

		open_loop(&l, opmod, (struct rig_opt){0});
		w = wqe_raw(&l.o.q, WQE_OP_WAIT, opmod, 3, SIG, 0);
		put32(w + 20, l.o.rig.key);
		put64(w + 24, (uintptr_t)l.src);
		go(&l);
		rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP);
		rig_one_close(&l.o);
	}
}

/* ---- lists of segments ------------------------------------------------------------------ */

/* Writes @n segments of 1, 2, 3, ... bytes from octoword @ds on, every second one inline if @mixed. Bytes in
 * all. */
static uint32_t put_list(
	struct loop *l, uint16_t at, unsigned ds, unsigned n, bool mixed, uint8_t *base, unsigned *end)
{
	uint32_t total = 0;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *seg = octoword(&l->o.q, at, ds);
		uint32_t len = i % 11 + 1;

		if (mixed && i % 2) {
			put32(seg, WQE_INLINE | len); /* 12 bytes at most: one octoword */
			memcpy(seg + 4, base + total, len);
		} else {
			put_seg(seg, base + total, len, l->o.rig.key);
		}
		total += len;
		ds++;
	}
	*end = ds;
	return total;
}

/* WRITE, SEND and READ with 1 to 30 segments, at every place of a small ring. */
static void gather_lists(void **state)
{
	static const uint8_t ops[] = {WQE_OP_WRITE, WQE_OP_SEND, WQE_OP_READ};
	struct loop l;

	open_loop(&l, 7, (struct rig_opt){.wqebbs = 16});
	for (unsigned i = 0; i < 3 * 30 * 16; i++) {
		uint8_t op = ops[i % 3];
		unsigned n = i / 3 % 30 + 1, first = op == WQE_OP_SEND ? 1 : 2, end;
		bool mixed = op != WQE_OP_READ && i % 2;
		uint16_t at = l.o.q.pi;
		uint32_t total;

		memset(l.dst, 0, 256);
		wqe_raw(&l.o.q, op, 0, (uint8_t)(first + n), SIG, 0);
		total = put_list(&l, at, first, n, mixed, op == WQE_OP_READ ? l.dst : l.src, &end);
		if (op == WQE_OP_SEND)
			rig_recv(&l.o.q, 1, l.dst, 256);
		else
			put_remote(&l, at, op == WQE_OP_READ ? l.src : l.dst);
		go(&l);
		assert_int_equal(wqe_get32(rig_expect(&l.o.scq, CQE_OP_REQ) + 44), total);
		assert_int_equal(rig_cq_count(&l.o.rcq), op == WQE_OP_SEND);
		assert_memory_equal(l.dst, l.src, total);
		assert_int_equal(l.dst[total], 0);
	}
	rig_one_close(&l.o);
}

/* Inline data of every length that a WQE of 16 WQEBBs holds. */
static void inline_lengths(void **state)
{
	struct loop l;

	open_loop(&l, 7, (struct rig_opt){.wqebbs = 16});
	for (uint32_t n = 0; n <= (63 - 2) * 16 - 4; n++) {
		memset(l.dst, 0, n + 1);
		wqe_inline_write(&l.o.q, l.src, n, l.dst, SIG);
		go(&l);
		rig_expect(&l.o.scq, CQE_OP_REQ);
		assert_memory_equal(l.dst, l.src, n);
		assert_int_equal(l.dst[n], 0);
	}
	/* one byte more than the WQE has */
	put32(wqe_inline_write(&l.o.q, l.src, 12, l.dst, SIG) + 32, WQE_INLINE | 13);
	go(&l);
	rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP);
	rig_one_close(&l.o);
	/* nowhere to put what a READ or an atomic brings */
	for (int atomic = 0; atomic < 2; atomic++) {
		uint8_t *w;

		open_loop(&l, 7, (struct rig_opt){0});
		w = atomic ? wqe_atomic(&l.o.q, WQE_OP_CAS, l.dst, l.dst, 0, 0, SIG)
			   : wqe_rdma(&l.o.q, WQE_OP_READ, l.dst, 8, l.src, SIG, 0);
		put32(w + (atomic ? 48 : 32), WQE_INLINE | 8);
		go(&l);
		rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP);
		rig_one_close(&l.o);
	}
}

/* Messages without a byte need no segment; those of more than 2^30 bytes do not exist. */
static void extreme_lengths(void **state)
{
	struct hw_mkey_attr attr = {0};
	struct hw_mem huge;
	struct loop l;
	uint32_t key;
	uint8_t *w;

	open_loop(&l, 2, (struct rig_opt){0});
	rig_recv(&l.o.q, 0);
	rig_recv(&l.o.q, 0);
	wqe_send(&l.o.q, WQE_OP_SEND, NULL, 0, SIG, 0);
	wqe_rdma(&l.o.q, WQE_OP_WRITE, NULL, 0, NULL, SIG, 0);
	wqe_rdma(&l.o.q, WQE_OP_WRITE_IMM, NULL, 0, NULL, SIG, 5);
	wqe_rdma(&l.o.q, WQE_OP_READ, NULL, 0, NULL, SIG, 0);
	go(&l);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wqe_get32(rig_expect(&l.o.scq, CQE_OP_REQ) + 44), 0);
	assert_int_equal(rig_cq_count(&l.o.rcq), 2);
	rig_one_close(&l.o);

	/* the memory of a refused message is not touched: this key covers more than there is */
	open_loop(&l, 2, (struct rig_opt){0});
	huge = l.o.rig.mem;
	huge.len = 1ull << 31;
	huge.refs = 1;
	attr.pdn = l.o.rig.pdn;
	attr.mem = &huge;
	attr.len = huge.len;
	assert_int_equal(hw_mkey_create(l.o.rig.dev, &attr, &key), 0);
	w = wqe_raw(&l.o.q, WQE_OP_WRITE, 0, 4, SIG, 0);
	put_remote(&l, 0, l.dst);
	put_seg(w + 32, NULL, 1 << 30, key);
	put_seg(w + 48, NULL, 1, key);
	go(&l);
	rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_LENGTH);
	assert_int_equal(hw_mkey_destroy(l.o.rig.dev, key), 0);
	rig_one_close(&l.o);
}

/* ---- RECVs ------------------------------------------------------------------------------ */

static void scatter_lists(void **state)
{
	struct loop l;
	uint8_t *w;

	for (uint64_t seed = 0; seed < 20; seed++) {
		open_loop(&l, seed, (struct rig_opt){0});
		/* ends early; skips an empty one; is used in part; is used up; has no byte */
		rig_recv(&l.o.q, 2, l.dst, 3, l.dst + 16, 10);
		rig_recv(&l.o.q, 4, l.dst + 32, 4, l.dst + 36, 0, l.dst + 48, 4, l.dst + 64, 100);
		rig_recv(&l.o.q, 4, l.dst + 256, 1, l.dst + 258, 1, l.dst + 260, 1, l.dst + 262, 1);
		rig_recv(&l.o.q, 0);
		w = l.o.q.rq + 64;
		put32(w + 16 + 4, 0); /* the key of an empty segment is not checked */
		wqe_send(&l.o.q, WQE_OP_SEND, l.src, 13, 0, 0);
		wqe_send(&l.o.q, WQE_OP_SEND, l.src, 9, 0, 0);
		wqe_send(&l.o.q, WQE_OP_SEND, l.src, 4, 0, 0);
		wqe_send(&l.o.q, WQE_OP_SEND, NULL, 0, SIG, 0);
		go(&l);
		rig_expect(&l.o.scq, CQE_OP_REQ);
		for (uint16_t i = 0; i < 4; i++)
			assert_int_equal(rig_cqe_idx(rig_expect(&l.o.rcq, CQE_OP_RESP_SEND)), i);
		assert_memory_equal(l.dst, l.src, 3);
		assert_memory_equal(l.dst + 16, l.src + 3, 10);
		assert_memory_equal(l.dst + 32, l.src, 4);
		assert_memory_equal(l.dst + 48, l.src + 4, 4);
		assert_int_equal(l.dst[64], l.src[8]);
		assert_int_equal(l.dst[65], 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(l.dst[256 + 2 * i], l.src[i]);
		rig_one_close(&l.o);
	}
}

/* A RECV whose list points into WQEs that are not enabled yet: arguments of a chain. */
static void recv_into_wqe(void **state)
{
	struct rig_opt managed = {.managed = true};

	for (uint64_t seed = 0; seed < 50; seed++) {
		struct rig_qp c;
		struct loop l;
		uint8_t *w;

		open_loop(&l, seed, (struct rig_opt){0});
		rig_qp_new_with(&l.o.rig, &c, &l.o.scq, &l.o.scq, managed);
		rig_connect(&c, &c);
		w = wqe_rdma(&c, WQE_OP_WRITE, NULL, 16, NULL, SIG, 0);
		put64(l.src, (uintptr_t)l.dst);
		put64(l.src + 8, (uintptr_t)l.src);
		rig_recv(&l.o.q, 2, w + 16, 8, w + 40, 8);
		wqe_send(&l.o.q, WQE_OP_SEND, l.src, 16, 0, 0);
		wqe_wait(&l.o.q, hw_cqn(l.o.rcq.cq), 0, 0);
		wqe_enable(&l.o.q, WQE_OP_SEND_EN, hw_qpn(c.qp), 1, 0);
		go(&l);
		rig_expect(&l.o.scq, CQE_OP_REQ);
		assert_memory_equal(l.dst, l.src, 16);
		rig_destroy(&c);
		rig_one_close(&l.o);
	}
}

/* The smallest RECV has one segment of 16 bytes; the largest here 32. */
static void recv_strides(void **state)
{
	for (uint32_t stride = 16; stride <= 512; stride *= 2) {
		struct hw_qp_attr attr = {
			.rq_wqes = 4, .rq_stride = stride, .sq_wqebbs = 4, .cd_master = true};
		struct hw_qp_mod mod;
		struct loop l;
		struct hw_qp *qp;
		uint8_t *rq, *sq;
		uint32_t *db, n = stride / 16;

		open_loop(&l, stride, (struct rig_opt){0});
		rq = rig_alloc(&l.o.rig, 4 * stride);
		sq = rig_alloc(&l.o.rig, 4 * 64);
		db = rig_alloc(&l.o.rig, 8);
		attr.pdn = l.o.rig.pdn;
		attr.scq = l.o.scq.cq;
		attr.rcq = l.o.rcq.cq;
		attr.rq = attr.sq = attr.db = &l.o.rig.mem;
		attr.rq_off = rig_off(&l.o.rig, rq);
		attr.sq_off = rig_off(&l.o.rig, sq);
		attr.db_off = rig_off(&l.o.rig, db);
		attr.uar = hw_uar_index(l.o.rig.uar);
		assert_int_equal(hw_qp_create(l.o.rig.dev, &attr, &qp), 0);
		rig_qp_to(&l.o.q, HW_RST); /* the sender; connected anew */
		rig_qp_connect_to(&l.o.q, hw_qpn(qp), NULL);
		rig_default_mod(&mod);
		mod.dest_qpn = hw_qpn(l.o.q.qp);
		assert_int_equal(hw_qp_modify(l.o.rig.dev, qp, HW_INIT, &(struct hw_qp_mod){0}), 0);
		assert_int_equal(hw_qp_modify(l.o.rig.dev, qp, HW_RTR, &mod), 0);
		for (unsigned lap = 0; lap < 9; lap++) {
			for (unsigned i = 0; i < n; i++)
				put_seg(rq + lap % 4 * stride + 16 * i, l.dst + 4 * i, 3, l.o.rig.key);
			db[0] = htobe32(lap + 1);
			memset(l.dst, 0, 256);
			wqe_send(&l.o.q, WQE_OP_SEND, l.src, 3 * n, 0, 0);
			go(&l);
			assert_int_equal(rig_cqe_idx(rig_expect(&l.o.rcq, CQE_OP_RESP_SEND)), lap);
			for (unsigned i = 0; i < n; i++)
				assert_memory_equal(l.dst + 4 * i, l.src + 3 * i, 3);
		}
		assert_int_equal(hw_qp_destroy(l.o.rig.dev, qp), 0);
		rig_one_close(&l.o);
	}
}

/* ---- datagrams -------------------------------------------------------------------------- */

static uint8_t *put_datagram(struct loop *l, struct mlx5_wqe_av *av, uint32_t qkey)
{
	uint8_t *w = wqe_raw(&l->o.q, WQE_OP_SEND, 0, 5, SIG, 0);

	av->key.qkey.qkey = htobe32(qkey);
	memcpy(w + 16, av, sizeof(*av));
	put_seg(octoword(&l->o.q, (uint16_t)(l->o.q.pi - 2), 4), l->src, 8, l->o.rig.key);
	return w;
}

static void address_vectors(void **state)
{
	struct mlx5_wqe_av av = {.hop_limit = 1, .rgid = {0xfe, 0x80, [15] = 1}};
	struct loop l;
	uint8_t *w;

	hw_gid_mac(av.rgid, av.rmac);
	open_loop(&l, 3, (struct rig_opt){.type = HW_UD});
	av.dqp_dct = htobe32(hw_qpn(l.o.q.qp) | 1u << 31); /* the bit announces the long form */
	for (int i = 0; i < 3; i++)
		rig_recv(&l.o.q, 1, l.dst + 64 * i, 64);
	put_datagram(&l, &av, 0x1111);
	put_datagram(&l, &av, 0x1112);     /* not the receiver's: dropped */
	put_datagram(&l, &av, 0x80000000); /* the sender's own */
	av.rmac[5] ^= 1;                   /* somebody else's frame */
	put_datagram(&l, &av, 0x1111);
	av.rmac[5] ^= 1;
	av.hop_limit = 0;
	put_datagram(&l, &av, 0x1111);
	av.hop_limit = 1;
	av.rgid[15] = 99; /* nobody there */
	put_datagram(&l, &av, 0x1111);
	go(&l);
	assert_int_equal(rig_cq_count(&l.o.scq), 6); /* the sender hears of nothing */
	for (int i = 0; i < 2; i++) {
		const uint8_t *cqe = rig_expect(&l.o.rcq, CQE_OP_RESP_SEND);

		assert_int_equal(wqe_get32(cqe + 44), 48);
		assert_int_equal(wqe_get32(cqe + 24) & 0xffffff, hw_qpn(l.o.q.qp));
		assert_memory_equal(l.dst + 64 * i + 40, l.src, 8);
	}
	assert_null(rig_cq_next(&l.o.rcq));
	/* an address vector that is cut short */
	w = wqe_raw(&l.o.q, WQE_OP_SEND, 0, 3, SIG, 0);
	memcpy(w + 16, &av, 32);
	go(&l);
	rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_QP_OP);
	rig_one_close(&l.o);
}

/* A queue pair sends messages of its log_msg_max, and none that is a byte longer, unless the NIC does not
 * care
 */
static void max_message(void **state)
{
	enum { LOG = 8, MOST = 1 << LOG };

	for (unsigned op = 0; op < 2; op++)
		for (unsigned heeded = 0; heeded < 2; heeded++)
			for (unsigned more = 0; more < 2; more++) {
				struct hw_qp_mod mod = {.mask = HW_QP_MAX_MSG, .log_max_msg = LOG};
				struct loop l;
				uint8_t *w;

				open_loop(&l, more, (struct rig_opt){0});
				if (!heeded) {
					rig_one_close(&l.o);
					rig_one_open(&l.o, (struct hw_config){.no_msg_limit = true},
						(struct hw_cq_attr){.log_size = 6}, (struct rig_opt){0});
					l.src = rig_alloc(&l.o.rig, SPACE);
					l.dst = rig_alloc(&l.o.rig, SPACE);
					memset(l.src, 1, SPACE);
				}
				assert_int_equal(hw_qp_modify(l.o.rig.dev, l.o.q.qp, HW_RTS, &mod), 0);
				w = wqe_raw(&l.o.q, op ? WQE_OP_READ : WQE_OP_WRITE, 0, 4, SIG, 0);
				put_remote(&l, 0, op ? l.src : l.dst);
				put_seg(w + 32, op ? l.dst : l.src, MOST - 1, l.o.rig.key);
				put_seg(w + 48, (op ? l.dst : l.src) + MOST - 1, 1 + more, l.o.rig.key);
				go(&l);
				if (heeded && more)
					rig_expect_error(&l.o.scq, CQE_SYND_LOCAL_LENGTH);
				else
					rig_expect(&l.o.scq, CQE_OP_REQ);
				assert_int_equal(l.dst[MOST - 1] != 0, !(heeded && more));
				rig_one_close(&l.o);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign_opcodes),
		cmocka_unit_test(opcodes),
		cmocka_unit_test(invalidate_locally),
		cmocka_unit_test(windows),
		cmocka_unit_test(atomic_opmods),
		cmocka_unit_test(wait_opmods),
		cmocka_unit_test(gather_lists),
		cmocka_unit_test(inline_lengths),
		cmocka_unit_test(extreme_lengths),
		cmocka_unit_test(max_message),
		cmocka_unit_test(scatter_lists),
		cmocka_unit_test(recv_into_wqe),
		cmocka_unit_test(recv_strides),
		cmocka_unit_test(address_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
