/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: arming, moderation, overrun, collapsed, resized; data delivered in CQEs; SRQ; datagrams.
 */
#include "softcx/hw/test-rig.h"
#include "util/clock.h"

#include <infiniband/mlx5dv.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void open_one_with(struct rig_one *o, struct hw_cq_attr cqs, struct rig_opt opt)
{
	rig_one_open(o, (struct hw_config){.seed = 4}, cqs, opt);
}

static void open_one(struct rig_one *o)
{
	open_one_with(o, (struct hw_cq_attr){0}, (struct rig_opt){0});
}

static void nops(struct rig_one *o, unsigned n)
{
	while (n--)
		wqe_nop(&o->q, 1, SIG);
	rig_one_go(o);
}

static void arm(void **state)
{
	struct rig_one o;

	open_one(&o);
	nops(&o, 1); /* not armed */
	assert_int_equal(o.scq.events, 0);
	rig_cq_arm(
		&o.scq, 0, false); /* the word is 0: a fresh record's value, yet an arm. One CQE is there */
	rig_run(&o.rig);
	assert_int_equal(o.scq.events, 1);
	nops(&o, 1); /* one arm, one event */
	assert_int_equal(o.scq.events, 1);
	rig_cq_arm(&o.scq, 1, false); /* a CQE that no event covered */
	rig_run(&o.rig);
	assert_int_equal(o.scq.events, 2);
	rig_cq_arm(&o.scq, 2, false); /* nothing new, though nothing was consumed */
	rig_run(&o.rig);
	assert_int_equal(o.scq.events, 2);
	assert_int_equal(rig_cq_count(&o.scq), 2);
	rig_cq_arm(&o.scq, 2, false);
	rig_run(&o.rig);
	assert_int_equal(o.scq.events, 2);
	nops(&o, 3);
	assert_int_equal(o.scq.events, 3);
	/* an arm whose doorbell was overwritten, or is not there: the record counts when the next CQE comes
	 */
	assert_int_equal(rig_cq_count(&o.scq), 3);
	o.scq.db[1] = htobe32(3 << 28 | o.scq.ci);
	nops(&o, 1);
	assert_int_equal(o.scq.events, 4);
	rig_one_close(&o);
}

static void solicited(void **state)
{
	struct rig_one o;

	open_one(&o);
	for (int i = 0; i < 3; i++)
		rig_recv(&o.q, 0);
	rig_cq_arm(&o.rcq, 0, true);
	wqe_send(&o.q, WQE_OP_SEND, NULL, 0, 0, 0);
	rig_one_go(&o);
	assert_int_equal(o.rcq.events, 0);
	wqe_send(&o.q, WQE_OP_SEND, NULL, 0, SOL, 0);
	rig_one_go(&o);
	assert_int_equal(o.rcq.events, 1);
	assert_int_equal(rig_cq_count(&o.rcq), 2);
	rig_cq_arm(&o.rcq, 1, true);
	rig_run(&o.rig);
	assert_int_equal(o.rcq.events, 1);
	rig_qp_to(&o.q, HW_ERR); /* the third RECV's flush is an error */
	assert_int_equal(o.rcq.events, 2);
	rig_one_close(&o);
}

static void moderation(void **state)
{
	enum { PERIOD_US = 20000 };
	unsigned before, two, three;
	struct rig_one o;
	uint64_t began;
	bool late;

	open_one_with(&o, (struct hw_cq_attr){.log_size = 4, .max_count = 3, .period_us = PERIOD_US},
		(struct rig_opt){0});
	/* unless this process has been kept waiting for a whole period */
	do {
		before = o.scq.events;
		began = clock_us();
		rig_cq_arm(&o.scq, before, false);
		nops(&o, 2);
		two = o.scq.events - before;
		nops(&o, 1);
		three = o.scq.events - before;
		late = clock_us() - began >= PERIOD_US;
		assert_int_equal(rig_cq_count(&o.scq), 3);
	} while (late);
	assert_int_equal(two, 0);
	assert_int_equal(three, 1); /* by count */
	before = o.scq.events;
	rig_cq_arm(&o.scq, before, false);
	nops(&o, 1);
	while (hw_next_timer(o.rig.dev) != UINT64_MAX) {
		usleep(1000);
		rig_run(&o.rig);
	}
	assert_int_equal(o.scq.events, before + 1); /* by time */
	rig_one_close(&o);
}

static void overrun(void **state)
{
	struct rig_one o;

	open_one_with(&o, (struct hw_cq_attr){.log_size = 2}, (struct rig_opt){0});
	nops(&o, 4);
	assert_int_equal(o.scq.errors, 0);
	assert_int_equal(rig_cq_count(&o.scq), 4);
	nops(&o, 6);
	assert_int_equal(o.scq.errors, 1);
	assert_int_equal(hw_qp_state(o.q.qp), HW_ERR);
	assert_int_equal(o.q.last_event, HW_EV_QP_FATAL);
	assert_int_equal(rig_cq_count(&o.scq), 4);
	rig_one_close(&o);

	/* the receive side of the same queue overruns while the send side is at work */
	open_one_with(&o, (struct hw_cq_attr){.log_size = 2}, (struct rig_opt){0});
	for (int i = 0; i < 6; i++) {
		rig_recv(&o.q, 0);
		wqe_send(&o.q, WQE_OP_SEND, NULL, 0, 0, 0);
	}
	rig_one_go(&o);
	assert_int_equal(o.rcq.errors, 1);
	assert_int_equal(rig_cq_count(&o.rcq), 4);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 4);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 5);
	assert_null(rig_cq_next(&o.scq));
	wqe_nop(&o.q, 1, 0);
	rig_one_go(&o);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 6);
	assert_null(rig_cq_next(&o.scq));
	rig_one_close(&o);

	open_one_with(&o, (struct hw_cq_attr){.log_size = 2, .oi = true}, (struct rig_opt){0});
	for (int i = 0; i < 100; i++)
		nops(&o, 7);
	assert_int_equal(o.scq.errors, 0);
	assert_int_equal(hw_cq_producer(o.scq.cq), 700);
	rig_one_close(&o);
}

static void collapsed(void **state)
{
	struct rig_one o;

	open_one_with(&o, (struct hw_cq_attr){.log_size = 3, .oi = true, .cc = true}, (struct rig_opt){0});
	nops(&o, 9);
	assert_int_equal(rig_cqe_idx(o.scq.ring), 8);
	assert_int_equal(o.scq.ring[64 + 63], 0xf1); /* untouched */
	rig_one_close(&o);
}

static void resized(void **state)
{
	struct rig_one o;
	uint8_t *ring;

	open_one_with(&o, (struct hw_cq_attr){.log_size = 2}, (struct rig_opt){0});
	nops(&o, 3);
	assert_int_equal(rig_cq_count(&o.scq), 3);
	nops(&o, 1);
	ring = rig_alloc(&o.rig, 16 * 64);
	memset(ring, 0xf1, 16 * 64);
	assert_int_equal(hw_cq_resize(o.rig.dev, o.scq.cq, &o.rig.mem, rig_off(&o.rig, ring), 4, 64), 0);
	rig_expect(&o.scq, CQE_OP_REQ);
	rig_expect(&o.scq, CQE_OP_RESIZE);
	o.scq.ring = ring;
	o.scq.size = 16;
	nops(&o, 9);
	for (uint16_t i = 4; i < 13; i++)
		assert_int_equal(rig_cqe_idx(rig_expect(&o.scq, CQE_OP_REQ)), i);
	rig_one_close(&o);
}

/* Firmware refuses a ring that has no room for the CQEs that nobody has read (BAD_SIZE_OUTS_CQES). */
static void resized_below_unread(void **state)
{
	struct rig_one o;
	uint8_t *ring;

	open_one_with(&o, (struct hw_cq_attr){.log_size = 4}, (struct rig_opt){0});
	nops(&o, 5);
	ring = rig_alloc(&o.rig, 16 * 64);
	memset(ring, 0xf1, 16 * 64);
	assert_int_equal(
		hw_cq_resize(o.rig.dev, o.scq.cq, &o.rig.mem, rig_off(&o.rig, ring), 2, 64), -EINVAL);
	rig_expect(&o.scq, CQE_OP_REQ);
	assert_int_equal(hw_cq_resize(o.rig.dev, o.scq.cq, &o.rig.mem, rig_off(&o.rig, ring), 2, 64), 0);
	for (unsigned i = 1; i < 5; i++)
		rig_expect(&o.scq, CQE_OP_REQ);
	rig_expect(&o.scq, CQE_OP_RESIZE);
	rig_one_close(&o);

	/* an old ring that is full */
	open_one_with(&o, (struct hw_cq_attr){.log_size = 2}, (struct rig_opt){0});
	nops(&o, 4);
	ring = rig_alloc(&o.rig, 16 * 64);
	memset(ring, 0xf1, 16 * 64);
	assert_int_equal(
		hw_cq_resize(o.rig.dev, o.scq.cq, &o.rig.mem, rig_off(&o.rig, ring), 4, 64), -EINVAL);
	assert_int_equal(rig_cq_count(&o.scq), 4);
	rig_one_close(&o);
}

static void scatter_to_cqe(void **state)
{
	for (int big = 0; big < 2; big++) {
		struct hw_cq_attr attr = {.log_size = 4, .cqe_bytes = big ? 128 : 64};
		uint32_t most = big ? 64 : 32;
		const uint8_t *cqe;
		struct rig_one o;
		uint8_t *src, *dst;
		uint64_t *word;

		open_one_with(&o, attr, (struct rig_opt){.cs_req = big ? 0x22 : 0x11, .cs_res = big ? 2 : 1});
		src = rig_alloc(&o.rig, 256);
		dst = rig_alloc(&o.rig, 256);
		word = rig_alloc(&o.rig, 64);
		for (int i = 0; i < 256; i++)
			src[i] = (uint8_t)(i + 1);
		rig_recv(&o.q, 1, dst, 200);
		rig_recv(&o.q, 1, dst, 200);
		wqe_send(&o.q, WQE_OP_SEND, src, most, 0, 0);
		rig_one_go(&o);
		cqe = rig_expect(&o.rcq, CQE_OP_RESP_SEND);
		assert_int_equal(cqe[63] & 0xc, big ? MLX5_INLINE_SCATTER_64 : MLX5_INLINE_SCATTER_32);
		assert_memory_equal(big ? cqe - 64 : cqe, src, most);
		assert_int_equal(dst[0], 0);
		wqe_send(&o.q, WQE_OP_SEND, src, most + 1, 0, 0);
		rig_one_go(&o);
		cqe = rig_expect(&o.rcq, CQE_OP_RESP_SEND);
		assert_int_equal(cqe[63] & 0xc, 0);
		assert_memory_equal(dst, src, most + 1);
		/* responses: only when the WQE has a CQE */
		wqe_rdma(&o.q, WQE_OP_READ, dst + 128, 20, src, SIG, 0);
		rig_one_go(&o);
		cqe = rig_expect(&o.scq, CQE_OP_REQ);
		assert_int_equal(dst[128], 0);
		assert_int_equal(wqe_get32(cqe + 44), 20);
		assert_memory_equal(big ? cqe - 64 : cqe, src, 20);
		wqe_rdma(&o.q, WQE_OP_READ, dst + 128, 20, src, 0, 0);
		*word = 0x0102030405060708;
		wqe_atomic(&o.q, WQE_OP_FETCH_ADD, dst, word, 1, 0, SIG);
		rig_one_go(&o);
		cqe = rig_expect(&o.scq, CQE_OP_REQ);
		assert_memory_equal(dst + 128, src, 20);
		assert_true(cqe[63] & 0xc);
		assert_int_equal(*(const uint64_t *)(big ? cqe - 64 : cqe), 0x0102030405060708);
		rig_one_close(&o);
	}
}

static void put_next(uint8_t *ring, unsigned i, unsigned next)
{
	ring[i * 32 + 3] = (uint8_t)next;
}

static void on_srq(void *arg, int event)
{
	assert_int_equal(event, HW_EV_SRQ_LIMIT);
	++*(unsigned *)arg;
}

static void srq(void **state)
{
	static const unsigned order[4] = {0, 2, 1, 3}; /* the WQEs are linked in this order */
	struct hw_config cfg = {.seed = 1};
	struct hw_srq_attr attr = {.wqes = 4, .stride = 32};
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp q;
	struct hw_srq *s;
	unsigned limits = 0;
	uint32_t *db;
	uint8_t *ring, *dst;

	rig_open(&rig, &cfg);
	ring = rig_alloc(&rig, 4 * 32);
	db = rig_alloc(&rig, 8);
	dst = rig_alloc(&rig, 64);
	for (unsigned i = 0; i < 4; i++) {
		put_next(ring, order[i], order[(i + 1) % 4]);
		put_seg(ring + i * 32 + 16, dst + 8 * i, 8, rig.key);
	}
	attr.pdn = rig.pdn;
	attr.buf = attr.db = &rig.mem;
	attr.buf_off = rig_off(&rig, ring);
	attr.db_off = rig_off(&rig, db);
	attr.on_event = on_srq;
	attr.arg = &limits;
	assert_int_equal(hw_srq_create(rig.dev, &attr, &s), 0);
	rig_cq_new(&rig, &cq, 4);
	rig_qp_new_with(&rig, &q, &cq, &cq, (struct rig_opt){.srq = s});
	rig_connect(&q, &q);
	assert_int_equal(hw_srq_destroy(rig.dev, s), -16 /* EBUSY */);
	assert_int_equal(hw_srq_limit(s, 2), 0);
	*db = htobe32(3);
	for (unsigned i = 0; i < 3; i++) {
		wqe_send(&q, WQE_OP_SEND, ring, 8, 0, 0);
		rig_ring(&q);
		rig_run(&rig);
		assert_int_equal(rig_cqe_idx(rig_expect(&cq, CQE_OP_RESP_SEND)), order[i]);
		assert_memory_equal(dst + 8 * order[i], ring, 8);
		assert_int_equal(limits, i >= 1);
	}
	rig_qp_to(&q, HW_ERR);
	assert_int_equal(q.last_event, HW_EV_LAST_WQE);
	rig_destroy(&q);
	assert_int_equal(hw_srq_destroy(rig.dev, s), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	rig_close(&rig);
}

/* A pool whose WQEs are used in the order of the ring, whatever they say of the next one. */
static void cyclic_srq(void **state)
{
	enum { WQES = 4, SENDS = 10 };
	struct hw_srq_attr attr = {.wqes = WQES, .stride = 32, .cyclic = true};
	struct hw_config cfg = {.seed = 1};
	struct rig_cq cq;
	struct hw_srq *s;
	struct rig_qp q;
	struct rig rig;
	uint8_t *ring, *dst;
	uint32_t *db;

	rig_open(&rig, &cfg);
	ring = rig_alloc(&rig, WQES * 32);
	db = rig_alloc(&rig, 8);
	dst = rig_alloc(&rig, 64);
	for (unsigned i = 0; i < WQES; i++) {
		put_next(ring, i, 0);
		put_seg(ring + i * 32 + 16, dst + 8 * i, 8, rig.key);
	}
	attr.pdn = rig.pdn;
	attr.buf = attr.db = &rig.mem;
	attr.buf_off = rig_off(&rig, ring);
	attr.db_off = rig_off(&rig, db);
	assert_int_equal(hw_srq_create(rig.dev, &attr, &s), 0);
	rig_cq_new(&rig, &cq, 4);
	rig_qp_new_with(&rig, &q, &cq, &cq, (struct rig_opt){.srq = s});
	rig_connect(&q, &q);
	for (unsigned i = 0; i < SENDS; i++) {
		*db = htobe32(i + 1);
		ring[0] = (uint8_t)i; /* a byte that nobody looks at */
		wqe_send(&q, WQE_OP_SEND, ring, 8, 0, 0);
		rig_ring(&q);
		rig_run(&rig);
		assert_int_equal(rig_cqe_idx(rig_expect(&cq, CQE_OP_RESP_SEND)), i); /* not wrapped */
		assert_memory_equal(dst + 8 * (i % WQES), ring, 8);
	}
	rig_destroy(&q);
	assert_int_equal(hw_srq_destroy(rig.dev, s), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	rig_close(&rig);
}

/* Posts a SEND of 9 bytes from @src, a buffer with the key @key, to where @av leads. */
static void post_datagram(struct rig_qp *q, const struct mlx5_wqe_av *av, const uint8_t *src, uint32_t key)
{
	uint8_t *w = wqe_raw(q, WQE_OP_SEND, 0, 5, SIG, 0);

	memcpy(w + 16, av, sizeof(*av));
	put_seg(w + 64, src, 9, key);
}

/* Two devices; a datagram from one to the other, and one that nobody takes. */
static void datagram(void **state)
{
	struct hw_config cfg = {.seed = 1};
	struct rig a, b;
	struct rig_cq ca, cb;
	struct rig_qp qa, qb;
	struct mlx5_wqe_av av = {.key.qkey.qkey = htobe32(0x1111), .hop_limit = 1};
	uint8_t *src, *dst;
	const uint8_t *cqe;
	unsigned sum = 0;

	rig_open_gid(&a, &cfg, 1);
	rig_open_gid(&b, &cfg, 2);
	rig_cq_new(&a, &ca, 4);
	rig_cq_new(&b, &cb, 4);
	rig_qp_new_with(&a, &qa, &ca, &ca, (struct rig_opt){.type = HW_UD});
	rig_qp_new_with(&b, &qb, &cb, &cb, (struct rig_opt){.type = HW_UD});
	rig_qp_connect_to(&qa, 0, NULL);
	rig_qp_connect_to(&qb, 0, NULL);
	src = rig_alloc(&a, 64);
	dst = rig_alloc(&b, 128);
	strcpy((char *)src, "datagram");
	rig_recv(&qb, 1, dst, 128);
	av.rgid[0] = 0xfe, av.rgid[1] = 0x80, av.rgid[15] = 2;
	hw_gid_mac(av.rgid, av.rmac);
	for (int i = 0; i < 2; i++) {
		av.dqp_dct = htobe32((hw_qpn(qb.qp) + !i * 1000) | 1u << 31);
		post_datagram(&qa, &av, src, a.key);
	}
	rig_ring(&qa);
	rig_run(&a);
	rig_expect(&ca, CQE_OP_REQ);
	rig_expect(&ca, CQE_OP_REQ);
	cqe = rig_expect(&cb, CQE_OP_RESP_SEND);
	assert_int_equal(wqe_get32(cqe + CQE_LENGTH), 49);
	/* a GRH in the buffer; RoCE v2 with an IPv6 header */
	assert_int_equal(wqe_get32(cqe + CQE_RQPN), 0x19000000 | hw_qpn(qa.qp));
	assert_string_equal((char *)dst + 40, "datagram");
	assert_int_equal(dst[0], 6 << 4);
	assert_int_equal(dst[8 + 15], 1); /* GRH: who sent it */
	assert_null(rig_cq_next(&cb));

	/* by IPv4 GIDs: an IPv4 header in the last 20 bytes of the 40 */
	memset(av.rgid, 0, sizeof(av.rgid));
	av.rgid[10] = av.rgid[11] = 0xff, av.rgid[12] = 10, av.rgid[15] = 2;
	hw_gid_mac(av.rgid, av.rmac);
	av.dqp_dct = htobe32(hw_qpn(qb.qp) | 1u << 31);
	av.grh_gid_fl = htobe32(1u << 30 | 1u << 20);
	av.hop_limit = 9;
	rig_recv(&qb, 1, dst, 128);
	post_datagram(&qa, &av, src, a.key);
	rig_ring(&qa);
	rig_run(&a);
	rig_expect(&ca, CQE_OP_REQ);
	assert_int_equal(wqe_get32(rig_expect(&cb, CQE_OP_RESP_SEND) + CQE_RQPN), 0x1a000000 | hw_qpn(qa.qp));
	assert_int_equal(dst[20], 0x45);
	assert_int_equal(dst[20 + 8], 9);
	assert_memory_equal(dst + 20 + 12, "\x0a\0\0\x01\x0a\0\0\x02", 8);
	for (int i = 20; i < 40; i += 2)
		sum += (unsigned)dst[i] << 8 | dst[i + 1];
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff); /* what a right checksum adds up to */

	/* by RoCE v1: a GRH */
	memset(av.rgid, 0, sizeof(av.rgid));
	av.rgid[0] = 0xfe, av.rgid[1] = 0x80, av.rgid[15] = 2;
	hw_gid_mac(av.rgid, av.rmac);
	av.grh_gid_fl = htobe32(1u << 30 | RIG_GID_V1 << 20);
	rig_recv(&qb, 2, dst, 128);
	post_datagram(&qa, &av, src, a.key);
	rig_ring(&qa);
	rig_run(&a);
	rig_expect(&ca, CQE_OP_REQ);
	assert_int_equal(wqe_get32(rig_expect(&cb, CQE_OP_RESP_SEND) + CQE_RQPN), 0x10000000 | hw_qpn(qa.qp));
	assert_int_equal(dst[6], 0x1b);
	assert_int_equal(dst[8 + 15], 1);
	rig_destroy(&qa);
	rig_destroy(&qb);
	assert_int_equal(hw_cq_destroy(a.dev, ca.cq), 0);
	assert_int_equal(hw_cq_destroy(b.dev, cb.cq), 0);
	rig_close(&b);
	rig_close(&a);
}

/* Connected queues of two devices, found by GID; the peer's device goes away. */
static void two_devices(void **state)
{
	struct hw_config cfg = {.seed = 1};
	uint8_t ga[16] = {0xfe, 0x80, [15] = 1}, gb[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
	struct rig a, b;
	struct rig_cq ca, cb;
	struct rig_qp qa, qb;
	uint8_t *src, *dst, *w;

	rig_open_gid(&a, &cfg, 1);
	rig_open_gid(&b, &cfg, 2);
	rig_cq_new(&a, &ca, 4);
	rig_cq_new(&b, &cb, 4);
	rig_qp_new(&a, &qa, &ca, &ca);
	rig_qp_new(&b, &qb, &cb, &cb);
	rig_qp_connect_to(&qa, hw_qpn(qb.qp), gb);
	rig_qp_connect_to(&qb, hw_qpn(qa.qp), ga);
	src = rig_alloc(&a, 8192);
	dst = rig_alloc(&b, 8192);
	memset(src, 0x5a, 8192);
	w = wqe_rdma(&qa, WQE_OP_WRITE, src, 8191, dst + 1, SIG, 0);
	put32(w + 24, b.key);
	rig_ring(&qa);
	rig_run(&a);
	rig_expect(&ca, CQE_OP_REQ);
	assert_memory_equal(dst + 1, src, 8191);
	rig_destroy(&qb);
	assert_int_equal(hw_cq_destroy(b.dev, cb.cq), 0);
	rig_close(&b);
	w = wqe_rdma(&qa, WQE_OP_WRITE, src, 8, dst, SIG, 0);
	rig_ring(&qa);
	while (rig_run(&a), hw_next_timer(a.dev) != UINT64_MAX)
		;
	rig_expect_error(&ca, CQE_SYND_RETRY);
	rig_destroy(&qa);
	assert_int_equal(hw_cq_destroy(a.dev, ca.cq), 0);
	rig_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arm),
		cmocka_unit_test(solicited),
		cmocka_unit_test(moderation),
		cmocka_unit_test(overrun),
		cmocka_unit_test(collapsed),
		cmocka_unit_test(resized),
		cmocka_unit_test(resized_below_unread),
		cmocka_unit_test(scatter_to_cqe),
		cmocka_unit_test(srq),
		cmocka_unit_test(cyclic_srq),
		cmocka_unit_test(datagram),
		cmocka_unit_test(two_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
