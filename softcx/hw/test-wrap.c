/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters that wrap, and WAIT, SEND_EN and RECV_EN at their limits. docs/softcx-conformance.md names the
 * source of each.
 */
#include "softcx/hw/cq.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

/* The number of a CQE has 24 bits; a WAIT reaches half of them ahead. */
static void wait_wraps(void **state)
{
	struct rig_one o;
	struct hw_cq *cq;

	rig_one_start(&o, 1);
	cq = o.scq.cq;
	cq->producer = 0xfffffc;
	o.scq.ci = 0xfffffc;
	o.scq.db[0] = htobe32(o.scq.ci);
	for (uint32_t i = 0; i < 8; i++) {
		wqe_nop(&o.q, 1, SIG);
		wqe_wait(&o.q, hw_cqn(cq), 0xfffffc + i, 0); /* the fields upper 8 bits are nobody's */
		wqe_nop(&o.q, 1, 0);
		rig_one_go(&o);
		rig_expect(&o.scq, CQE_OP_REQ);
		assert_int_equal(o.q.qp->sq_ci, o.q.pi);
	}
	assert_int_equal(hw_cq_producer(cq), 4);
	/* 4 CQEs after the wrap: number 3 was, number 4 was not, and so for half the circle either way */
	wqe_wait(&o.q, hw_cqn(cq), 3, 0);
	wqe_wait(&o.q, hw_cqn(cq), 4 - 0x800000, 0);
	rig_one_go(&o);
	assert_int_equal(o.q.qp->sq_ci, o.q.pi);
	wqe_wait(&o.q, hw_cqn(cq), 3 + 0x800000, 0);
	rig_one_go(&o);
	assert_int_equal(o.q.qp->sq_ci, (uint16_t)(o.q.pi - 1));
	rig_one_close(&o);
}

/* Several WAITs on one CQ, their numbers equal or falling: all pass once it is there. */
static void waits_fall(void **state)
{
	static const uint32_t n[] = {2, 2, 1, 0, 0xffffff};
	struct rig_one o;

	rig_one_start(&o, 1);
	for (size_t i = 0; i < COUNT(n); i++)
		wqe_wait(&o.q, hw_cqn(o.rcq.cq), n[i], SIG);
	rig_one_go(&o);
	assert_null(rig_cq_next(&o.scq));
	o.rcq.cq->producer = 2;
	hw_cq_push(o.rcq.cq, &(struct hw_cqe){0});
	rig_run(&o.rig);
	assert_int_equal(rig_cq_count(&o.scq), COUNT(n));
	rig_one_close(&o);
}

/* A WAIT sees the counter, not the ring: beyond the depth of a CQ that ignores overrun, or that is collapsed.
 */
static void wait_beyond_depth(void **state)
{
	for (int cc = 0; cc < 2; cc++) {
		struct hw_cq_attr attr = {.log_size = 1, .oi = true, .cc = cc};
		struct rig_one o;
		struct rig_qp w;
		struct rig_cq cq;

		rig_one_open(&o, (struct hw_config){.seed = 1}, attr, (struct rig_opt){0});
		rig_cq_new(&o.rig, &cq, 4);
		rig_qp_new(&o.rig, &w, &cq, &cq);
		rig_connect(&w, &w);
		wqe_wait(&w, hw_cqn(o.scq.cq), 24, SIG);
		rig_ring(&w);
		for (int i = 0; i < 25; i++) {
			rig_run(&o.rig);
			assert_null(rig_cq_next(&cq));
			wqe_nop(&o.q, 1, SIG);
			rig_one_go(&o);
		}
		rig_expect(&cq, CQE_OP_REQ);
		rig_destroy(&w);
		assert_int_equal(hw_cq_destroy(o.rig.dev, cq.cq), 0);
		rig_one_close(&o);
	}
}

/* SEND_EN: 16 bits, half a circle ahead, no effect behind. */
static void enable_window(void **state)
{
	static const struct {
		uint16_t from, to;
		bool moves;
	} t[] = {
		{0, 1, true},
		{0, 0x7fff, true},
		{0, 0x8000, false},
		{0, 0xffff, false},
		{0xfff0, 0x0005, true},
		{0xfff0, 0xffef, false},
		{0x8000, 0xffff, true},
		{0x8000, 0, false},
	};

	for (size_t i = 0; i < COUNT(t); i++)
		for (int recv = 0; recv < 2; recv++) {
			struct rig_one o;
			struct rig_qp c;
			uint16_t *at;

			rig_one_start(&o, i);
			rig_qp_new_with(&o.rig, &c, &o.rcq, &o.rcq,
				(struct rig_opt){.managed = true, .managed_recv = true});
			/* not in RTS: it only counts */
			rig_qp_to(&c, HW_INIT);
			at = recv ? &c.qp->rq_enabled : &c.qp->sq_pi;
			*at = t[i].from;
			c.qp->sq_ci = c.qp->sq_fetched = t[i].from;
			wqe_enable(&o.q, recv ? WQE_OP_RECV_EN : WQE_OP_SEND_EN, hw_qpn(c.qp), t[i].to, SIG);
			rig_one_go(&o);
			rig_expect(&o.scq, CQE_OP_REQ);
			assert_int_equal(*at, t[i].moves ? t[i].to : t[i].from);
			rig_destroy(&c);
			rig_one_close(&o);
		}
}

/* RECVs: the 16-bit counter of the doorbell record, and a ring of zeros that is enabled once and consumed for
 * long. */
static void recvs_wrap(void **state)
{
	enum { ENABLED = 0x6fff };
	struct rig_one o;
	struct rig_qp c;
	uint8_t *dst;

	rig_one_start(&o, 1);
	dst = rig_alloc(&o.rig, 64);
	for (unsigned i = 0; i < 70000; i++) {
		rig_recv(&o.q, 1, dst, 4);
		wqe_send(&o.q, WQE_OP_SEND, &o.rig.mem.host[64 * (i & 7)], 4, 0, 0);
		rig_one_go(&o);
		assert_int_equal(rig_cqe_idx(rig_expect(&o.rcq, CQE_OP_RESP_SEND)), (uint16_t)i);
	}
	rig_qp_new_with(&o.rig, &c, &o.scq, &o.rcq, (struct rig_opt){.managed_recv = true});
	rig_connect(&c, &c);
	wqe_enable(&o.q, WQE_OP_RECV_EN, hw_qpn(c.qp), ENABLED, 0);
	rig_one_go(&o);
	for (unsigned i = 0; i < ENABLED; i++) {
		wqe_rdma(&c, WQE_OP_WRITE_IMM, NULL, 0, NULL, 0, htobe32(i));
		rig_ring(&c);
		rig_run(&o.rig);
		assert_int_equal(wqe_get32(rig_expect(&o.rcq, CQE_OP_RESP_WRITE_IMM) + 36), i);
	}
	wqe_rdma(&c, WQE_OP_WRITE_IMM, NULL, 0, NULL, 0, 0);
	rig_ring(&c);
	rig_run(&o.rig);
	assert_null(rig_cq_next(&o.rcq)); /* that was all: RNR */
	rig_destroy(&c);
	rig_one_close(&o);
}

/* 24 bits of packet sequence numbers, one for each packet of the path MTU. */
static void psn_wraps(void **state)
{
	struct rig_pair p;
	struct hw_qp_mod mod;
	uint16_t unused;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){0});
	rig_connect(&p.q[0], &p.q[1]);
	for (int i = 0; i < 2; i++) {
		rig_qp_to(&p.q[i], HW_RST);
		rig_qp_to(&p.q[i], HW_INIT);
		rig_default_mod(&mod);
		mod.sq_psn = mod.rq_psn = 0xfffffe;
		mod.dest_qpn = hw_qpn(p.q[!i].qp);
		assert_int_equal(hw_qp_modify(p.rig.dev, p.q[i].qp, HW_RTR, &mod), 0);
		rig_qp_to(&p.q[i], HW_RTS);
	}
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);       /* 1 */
	wqe_rdma(&p.q[0], WQE_OP_READ, p.src, 2049, p.dst, SIG, 0);     /* 3 of 1024 bytes */
	wqe_atomic(&p.q[0], WQE_OP_FETCH_ADD, p.src, p.dst, 1, 0, SIG); /* 1 */
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 1024, p.dst, SIG, 0);    /* 1 */
	wqe_rdma(&p.q[0], WQE_OP_WRITE, NULL, 0, NULL, SIG, 0);         /* 1 */
	wqe_nop(&p.q[0], 1, SIG);                                       /* none */
	rig_ring(&p.q[0]);
	rig_run(&p.rig);
	for (int i = 0; i < 6; i++)
		rig_expect(&p.scq[0], CQE_OP_REQ);
	hw_qp_query(p.q[0].qp, &mod, &unused, &unused);
	assert_int_equal(mod.sq_psn, 5);
	assert_int_equal(mod.rq_psn, 0xfffffe);
	hw_qp_query(p.q[1].qp, &mod, &unused, &unused);
	assert_int_equal(mod.rq_psn, 5);
	/* who starts again alone is not heard */
	rig_qp_to(&p.q[0], HW_RST);
	p.q[0].pi = 0;
	p.q[0].db[1] = 0;
	rig_qp_connect_to(&p.q[0], hw_qpn(p.q[1].qp), NULL);
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
	rig_ring(&p.q[0]);
	rig_run(&p.rig);
	rig_settle(&p.rig);
	rig_expect_error(&p.scq[0], CQE_SYND_RETRY);
	rig_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait_wraps),
		cmocka_unit_test(waits_fall),
		cmocka_unit_test(wait_beyond_depth),
		cmocka_unit_test(enable_window),
		cmocka_unit_test(recvs_wrap),
		cmocka_unit_test(psn_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
