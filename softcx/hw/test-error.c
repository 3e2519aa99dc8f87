/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors: keys, lengths, lost peers, missing RECVs; error CQEs, flushes, events, states. */
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

static void open_pair(struct rig_pair *p)
{
	rig_pair_open(p, (struct hw_config){.seed = 1}, (struct rig_opt){0});
	rig_connect(&p->q[0], &p->q[1]);
}

static void go(struct rig_pair *p)
{
	rig_ring(&p->q[0]);
	rig_run(&p->rig);
}

/* The failing WQE is followed by others, signalled or not; all are flushed, in order; so are RECVs. */
static void error_flushes(void **state)
{
	struct rig_pair p;
	uint8_t *w;

	open_pair(&p);
	rig_recv(&p.q[0], 1, p.dst, 8);
	rig_recv(&p.q[0], 1, p.dst, 8);
	wqe_nop(&p.q[0], 1, SIG);
	w = wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, 0, 0);
	put32(w + 32 + 4, p.rig.key ^ 1);
	wqe_nop(&p.q[0], 8, 0);
	wqe_nop(&p.q[0], 1, SIG);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	w = (uint8_t *)(uintptr_t)rig_expect_error(&p.scq[0], CQE_SYND_LOCAL_PROT);
	assert_int_equal(rig_cqe_idx(w), 1);
	assert_int_equal(w[56], WQE_OP_WRITE);
	assert_int_equal(wqe_get32(w + 32), 0x123456);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 2);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 4);
	assert_null(rig_cq_next(&p.scq[0]));
	assert_int_equal(rig_cqe_op(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), CQE_OP_RESP_ERR);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), 1);
	assert_null(rig_cq_next(&p.rcq[0]));
	/* what is posted to a queue in ERR is flushed too */
	wqe_nop(&p.q[0], 1, 0);
	rig_recv(&p.q[0], 1, p.dst, 8);
	go(&p);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 5);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), 2);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_RTS); /* a local error is no business of the peer */
	rig_pair_close(&p);
}

/* More queues in ERR than a pass looks at */
static void many_flushes(void **state)
{
	enum { QPS = 150 };
	static struct rig_qp q[QPS];
	struct rig rig;
	struct rig_cq scq, rcq;
	uint8_t *dst;

	rig_open(&rig, &(struct hw_config){.seed = 1});
	dst = rig_alloc(&rig, 64);
	rig_cq_new(&rig, &scq, 4);
	rig_cq_new(&rig, &rcq, 8);
	for (unsigned i = 0; i < QPS; i++) {
		rig_qp_new(&rig, &q[i], &scq, &rcq);
		rig_qp_to(&q[i], HW_ERR);
	}
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < QPS; i++)
			rig_recv(&q[i], 1, dst, 8);
		rig_run(&rig);
		assert_int_equal(rig_cq_count(&rcq), QPS);
	}
	for (unsigned i = 0; i < QPS; i++)
		rig_destroy(&q[i]);
	assert_int_equal(hw_cq_destroy(rig.dev, scq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, rcq.cq), 0);
	rig_close(&rig);
}

static void managed_flush(void **state)
{
	struct rig_pair p;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){.managed = true});
	rig_connect(&p.q[0], &p.q[0]);
	for (int i = 0; i < 4; i++)
		wqe_wait(&p.q[0], hw_cqn(p.scq[0].cq), 100, 0);
	rig_ring(&p.q[0]);
	rig_qp_connect_to(&p.q[1], hw_qpn(p.q[1].qp), NULL);
	rig_qp_to(&p.q[0], HW_ERR);
	rig_run(&p.rig);
	assert_null(rig_cq_next(&p.scq[0])); /* nothing was enabled */
	rig_pair_close(&p);

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){.managed = true});
	rig_destroy(&p.q[1]); /* an ordinary one instead */
	rig_qp_new(&p.rig, &p.q[1], &p.scq[1], &p.rcq[1]);
	rig_connect(&p.q[0], &p.q[0]);
	rig_connect(&p.q[1], &p.q[1]);
	for (int i = 0; i < 4; i++)
		wqe_wait(&p.q[0], hw_cqn(p.scq[0].cq), 100, 0);
	wqe_enable(&p.q[1], WQE_OP_SEND_EN, hw_qpn(p.q[0].qp), 2, 0);
	rig_ring(&p.q[1]);
	rig_run(&p.rig);
	rig_qp_to(&p.q[0], HW_ERR);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 0);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 1);
	assert_null(rig_cq_next(&p.scq[0]));
	wqe_enable(&p.q[1], WQE_OP_SEND_EN, hw_qpn(p.q[0].qp), 3, 0); /* enabling more flushes more */
	rig_ring(&p.q[1]);
	rig_run(&p.rig);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.scq[0], CQE_SYND_FLUSH)), 2);
	rig_pair_close(&p);
}

/* What is in the doorbell record of a managed RQ does not matter */
static void managed_recv_flush(void **state)
{
	struct rig_pair p;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){.managed_recv = true});
	rig_destroy(&p.q[1]); /* an ordinary one instead */
	rig_qp_new(&p.rig, &p.q[1], &p.scq[1], &p.rcq[1]);
	rig_connect(&p.q[0], &p.q[0]);
	rig_connect(&p.q[1], &p.q[1]);
	wqe_enable(&p.q[1], WQE_OP_RECV_EN, hw_qpn(p.q[0].qp), 2, 0);
	rig_ring(&p.q[1]);
	rig_run(&p.rig);
	rig_qp_to(&p.q[0], HW_ERR);
	rig_run(&p.rig);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), 0);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), 1);
	assert_null(rig_cq_next(&p.rcq[0]));
	wqe_enable(&p.q[1], WQE_OP_RECV_EN, hw_qpn(p.q[0].qp), 3, 0); /* enabling more flushes more */
	rig_ring(&p.q[1]);
	rig_run(&p.rig);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&p.rcq[0], CQE_SYND_FLUSH)), 2);
	rig_pair_close(&p);
}

enum where { LKEY, RKEY };

/* A key with @access of 64 bytes, used by @opcode at its address plus @shift */
struct key_check {
	const char *what;
	enum where where;
	unsigned access;
	int64_t shift;
	bool other_pd, ok, wrong_variant, destroyed;
	uint8_t opcode;
};

static const struct key_check key_table[] = {
	{.what = "good lkey", .where = LKEY, .access = 0, .ok = true, .opcode = WQE_OP_WRITE},
	{.what = "good rkey", .where = RKEY, .access = 3, .ok = true, .opcode = WQE_OP_WRITE},
	{.what = "good rkey", .where = RKEY, .access = 4, .ok = true, .opcode = WQE_OP_READ},
	{.what = "good rkey", .where = RKEY, .access = 9, .ok = true, .opcode = WQE_OP_FETCH_ADD},
	{.what = "good lkey", .where = LKEY, .access = 1, .ok = true, .opcode = WQE_OP_READ},
	{.what = "below", .where = LKEY, .access = 15, .shift = -1, .opcode = WQE_OP_WRITE},
	{.what = "beyond", .where = LKEY, .access = 15, .shift = 57, .opcode = WQE_OP_WRITE},
	{.what = "below", .where = RKEY, .access = 15, .shift = -1, .opcode = WQE_OP_WRITE},
	{.what = "beyond", .where = RKEY, .access = 15, .shift = 57, .opcode = WQE_OP_READ},
	{.what = "at the end", .where = RKEY, .access = 15, .shift = 56, .ok = true, .opcode = WQE_OP_READ},
	{.what = "no local write", .where = LKEY, .access = 4, .opcode = WQE_OP_READ},
	{.what = "no local write", .where = LKEY, .access = 4, .opcode = WQE_OP_FETCH_ADD},
	{.what = "no remote write", .where = RKEY, .access = 13, .opcode = WQE_OP_WRITE},
	{.what = "no remote read", .where = RKEY, .access = 11, .opcode = WQE_OP_READ},
	{.what = "no atomics", .where = RKEY, .access = 7, .opcode = WQE_OP_CAS},
	{.what = "other PD", .where = LKEY, .access = 15, .other_pd = true, .opcode = WQE_OP_WRITE},
	{.what = "other PD", .where = RKEY, .access = 15, .other_pd = true, .opcode = WQE_OP_WRITE},
	{.what = "variant", .where = RKEY, .access = 15, .wrong_variant = true, .opcode = WQE_OP_WRITE},
	{.what = "destroyed", .where = RKEY, .access = 15, .destroyed = true, .opcode = WQE_OP_WRITE},
};

enum { KEY_IOVA = 0x100000 };

static uint32_t new_key(struct rig_pair *p, const struct key_check *t, uint32_t other_pd)
{
	const struct hw_mkey_attr attr = {.pdn = t->other_pd ? other_pd : p->rig.pdn,
		.iova = KEY_IOVA,
		.len = 64,
		.access = t->access,
		.mem = &p->rig.mem,
		.mem_off = rig_off(&p->rig, p->dst)};
	uint32_t key;

	assert_int_equal(hw_mkey_create(p->rig.dev, &attr, &key), 0);
	return key;
}

static void post_with_key(struct rig_pair *p, const struct key_check *t, uint32_t key)
{
	bool atomic = t->opcode == WQE_OP_CAS || t->opcode == WQE_OP_FETCH_ADD;
	uint8_t *w, *sge;

	if (atomic)
		w = wqe_atomic(&p->q[0], t->opcode, p->src, p->src + 64, 1, 0, SIG);
	else
		w = wqe_rdma(&p->q[0], t->opcode, p->src, 8, p->src + 64, SIG, 0);
	if (t->where == RKEY) {
		put64(w + WQE_RADDR, (uint64_t)(KEY_IOVA + t->shift));
		put32(w + WQE_RKEY, t->wrong_variant ? key ^ 1 : key);
		return;
	}
	sge = w + (atomic ? 48 : WQE_RDMA_SGE);
	put32(sge + WQE_SGE_LKEY, key);
	put64(sge + WQE_SGE_ADDR, (uint64_t)(KEY_IOVA + t->shift));
}

static void expect_key_result(struct rig_pair *p, const struct key_check *t)
{
	if (t->ok) {
		rig_expect(&p->scq[0], CQE_OP_REQ);
	} else if (t->where == LKEY) {
		rig_expect_error(&p->scq[0], CQE_SYND_LOCAL_PROT);
	} else {
		rig_expect_error(&p->scq[0], CQE_SYND_REMOTE_ACCESS);
		assert_int_equal(hw_qp_state(p->q[1].qp), HW_ERR);
		assert_int_equal(p->q[1].last_event, HW_EV_QP_ACCESS_ERR);
	}
}

static void key_checks(void **state)
{
	for (size_t i = 0; i < COUNT(key_table); i++) {
		const struct key_check *t = &key_table[i];
		struct rig_pair p;
		uint32_t key, pdn;

		open_pair(&p);
		assert_int_equal(hw_pd_alloc(p.rig.dev, &pdn), 0);
		key = new_key(&p, t, pdn);
		if (t->other_pd)
			assert_int_equal(hw_pd_free(p.rig.dev, pdn), -EBUSY);
		post_with_key(&p, t, key);
		if (t->destroyed)
			assert_int_equal(hw_mkey_destroy(p.rig.dev, key), 0);
		go(&p);
		expect_key_result(&p, t);
		if (!t->destroyed)
			assert_int_equal(hw_mkey_destroy(p.rig.dev, key), 0);
		assert_int_equal(hw_mkey_destroy(p.rig.dev, key), -EINVAL);
		assert_int_equal(hw_pd_free(p.rig.dev, pdn), 0);
		rig_pair_close(&p);
	}
}

/* The QP's own rights count too. */
static void qp_access(void **state)
{
	struct rig_pair p;
	struct hw_qp_mod mod = {.mask = HW_QP_ACCESS, .access = HW_REMOTE_READ | HW_REMOTE_ATOMIC};

	open_pair(&p);
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[1].qp, HW_RTS, &mod), 0);
	wqe_rdma(&p.q[0], WQE_OP_READ, p.src, 8, p.dst, SIG, 0);
	wqe_atomic(&p.q[0], WQE_OP_FETCH_ADD, p.src, p.dst, 1, 0, SIG);
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_ACCESS);
	rig_pair_close(&p);
}

static void misaligned_atomic(void **state)
{
	struct rig_pair p;

	open_pair(&p);
	wqe_atomic(&p.q[0], WQE_OP_FETCH_ADD, p.src, p.dst + 4, 1, 0, SIG);
	go(&p);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_INVAL);
	rig_pair_close(&p);
}

static void recv_errors(void **state)
{
	struct rig_pair p;
	uint8_t *w;

	open_pair(&p); /* too little room */
	rig_recv(&p.q[1], 2, p.dst, 8, p.dst + 8, 7);
	wqe_send(&p.q[0], WQE_OP_SEND, p.src, 16, SIG, 0);
	go(&p);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_INVAL);
	rig_expect_error(&p.rcq[1], CQE_SYND_LOCAL_LENGTH);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_ERR);
	rig_pair_close(&p);

	open_pair(&p); /* a bad key in the second segment, not reached by the first message */
	for (int i = 0; i < 2; i++) {
		rig_recv(&p.q[1], 2, p.dst, 8, p.dst + 8, 8);
		w = p.q[1].rq + 64 * i;
		put32(w + 16 + 4, p.rig.key ^ 3);
	}
	wqe_send(&p.q[0], WQE_OP_SEND, p.src, 8, SIG, 0);
	wqe_send(&p.q[0], WQE_OP_SEND, p.src, 9, SIG, 0);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_OP);
	rig_expect(&p.rcq[1], CQE_OP_RESP_SEND);
	rig_expect_error(&p.rcq[1], CQE_SYND_LOCAL_PROT);
	rig_pair_close(&p);
}

static void rnr(void **state)
{
	struct rig_pair p;
	struct hw_qp_mod mod = {.mask = HW_QP_RNR_RETRY, .rnr_retry = 2};

	open_pair(&p); /* a RECV that comes in time */
	wqe_send(&p.q[0], WQE_OP_SEND, p.src, 16, SIG, 0);
	go(&p);
	assert_null(rig_cq_next(&p.scq[0]));
	rig_recv(&p.q[1], 1, p.dst, 16);
	rig_settle(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_expect(&p.rcq[1], CQE_OP_RESP_SEND);
	/* the write of a WRITE_IMM waits for its RECV too; retries run out */
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
	memset(p.src, 1, 8);
	wqe_rdma(&p.q[0], WQE_OP_WRITE_IMM, p.src, 8, p.dst + 64, SIG, 5);
	go(&p);
	rig_settle(&p.rig);
	rig_expect_error(&p.scq[0], CQE_SYND_RNR_RETRY);
	assert_int_equal(p.dst[64], 0);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_RTS);
	rig_pair_close(&p);
}

static void lost_peer(void **state)
{
	struct rig_pair p;

	for (int how = 0; how < 4; how++) {
		struct hw_qp_mod mod;

		open_pair(&p);
		rig_default_mod(&mod);
		mod.dest_qpn = hw_qpn(p.q[0].qp);
		switch (how) {
		case 0:
			rig_qp_to(&p.q[1], HW_RST);
			break;
		case 1: /* connected to somebody else */
			rig_qp_to(&p.q[1], HW_RST);
			mod.dest_qpn = hw_qpn(p.q[1].qp);
			break;
		case 2: /* other packet sequence numbers */
			rig_qp_to(&p.q[1], HW_RST);
			mod.rq_psn++;
			break;
		case 3:
			rig_qp_to(&p.q[1], HW_ERR);
			break;
		}
		if (how == 1 || how == 2) {
			rig_qp_to(&p.q[1], HW_INIT);
			assert_int_equal(hw_qp_modify(p.rig.dev, p.q[1].qp, HW_RTR, &mod), 0);
		}
		wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
		go(&p);
		rig_settle(&p.rig);
		rig_expect_error(&p.scq[0], CQE_SYND_RETRY);
		rig_pair_close(&p);
	}
	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){0}); /* a peer that is late */
	rig_qp_connect_to(&p.q[0], hw_qpn(p.q[1].qp), NULL);
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
	go(&p);
	rig_qp_connect_to(&p.q[1], hw_qpn(p.q[0].qp), NULL);
	rig_settle(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	rig_pair_close(&p);
}

static void completion_modes(void **state)
{
	for (uint8_t mode = 0; mode < 4; mode++) {
		struct rig_pair p;

		open_pair(&p);
		wqe_nop(&p.q[0], 1, (uint8_t)(mode << 2));
		go(&p);
		assert_int_equal(rig_cq_count(&p.scq[0]), mode >= 2);
		wqe_raw(&p.q[0], 0x3e, 0, 1, (uint8_t)(mode << 2), 0);
		go(&p);
		rig_expect_error(&p.scq[0], CQE_SYND_LOCAL_QP_OP);
		rig_pair_close(&p);
	}
}

static void states(void **state)
{
	struct rig_pair p;
	struct hw_qp_mod mod;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){0});
	rig_default_mod(&mod);
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), -EINVAL);
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTR, &mod), -EINVAL);
	wqe_nop(&p.q[0], 1, SIG);
	rig_connect(&p.q[0], &p.q[1]);
	assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_INIT, &mod), -EINVAL);
	rig_qp_to(&p.q[0], HW_SQD);
	assert_int_equal(p.q[0].last_event, HW_EV_SQ_DRAINED);
	go(&p);
	assert_null(rig_cq_next(&p.scq[0]));
	rig_qp_to(&p.q[0], HW_RTS);
	rig_run(&p.rig);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	/* a reset starts all indices anew */
	rig_qp_to(&p.q[0], HW_RST);
	p.q[0].pi = 0;
	p.q[0].db[1] = 0;
	rig_qp_connect_to(&p.q[0], hw_qpn(p.q[1].qp), NULL);
	wqe_nop(&p.q[0], 1, SIG);
	go(&p);
	assert_int_equal(rig_cqe_idx(rig_expect(&p.scq[0], CQE_OP_REQ)), 0);
	rig_pair_close(&p);
}

static void invalidation(void **state)
{
	struct rig_pair p;
	struct hw_mkey_attr attr;
	uint32_t key;
	uint8_t *w;

	open_pair(&p);
	attr = (struct hw_mkey_attr){.pdn = p.rig.pdn,
		.iova = 0,
		.len = 64,
		.access = 3,
		.mem = &p.rig.mem,
		.mem_off = rig_off(&p.rig, p.dst),
		.remote_inval = true};
	assert_int_equal(hw_mkey_create(p.rig.dev, &attr, &key), 0);
	rig_recv(&p.q[1], 0);
	wqe_send(&p.q[0], WQE_OP_SEND_INVAL, NULL, 0, SIG, htobe32(key));
	w = wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, NULL, SIG, 0);
	put32(w + 24, key);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(wqe_get32(rig_expect(&p.rcq[1], CQE_OP_RESP_SEND_INVAL) + 36), key);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_ACCESS);
	assert_int_equal(hw_mkey_destroy(p.rig.dev, key), 0);
	rig_pair_close(&p);
}

/* A key that is not made for it stays valid, whichever peer names it; the sender and its queue pair fail. */
static void invalidation_refused(void **state)
{
	struct hw_mkey_attr attr;
	struct rig_pair p;
	uint32_t key;
	uint8_t *w;

	open_pair(&p);
	attr = (struct hw_mkey_attr){.pdn = p.rig.pdn,
		.len = 64,
		.access = 3,
		.mem = &p.rig.mem,
		.mem_off = rig_off(&p.rig, p.dst)};
	assert_int_equal(hw_mkey_create(p.rig.dev, &attr, &key), 0);
	rig_recv(&p.q[1], 0);
	wqe_send(&p.q[0], WQE_OP_SEND_INVAL, NULL, 0, SIG, htobe32(key));
	go(&p);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_INVAL);
	for (int i = 0; i < 2; i++) {
		rig_qp_to(&p.q[i], HW_RST);
		p.q[i].pi = 0;
		p.q[i].db[0] = p.q[i].db[1] = 0;
	}
	rig_connect(&p.q[0], &p.q[1]);
	p.src[0] = 5;
	w = wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, NULL, SIG, 0);
	put32(w + 24, key);
	go(&p);
	rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(p.dst[0], 5);
	assert_int_equal(hw_mkey_destroy(p.rig.dev, key), 0);
	rig_pair_close(&p);
}

/* UC: no answer, so nothing is known at the requester. */
static void unreliable(void **state)
{
	struct rig_pair p;
	uint8_t *w;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){.type = HW_UC});
	rig_connect(&p.q[0], &p.q[1]);
	p.src[0] = 9;
	wqe_send(&p.q[0], WQE_OP_SEND, p.src, 8, SIG, 0); /* no RECV: dropped */
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
	w = wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0);
	put32(w + 24, 0);
	wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, SIG, 0); /* nobody there any more */
	go(&p);
	for (int i = 0; i < 4; i++)
		rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(p.dst[0], 9);
	assert_int_equal(hw_qp_state(p.q[1].qp), HW_ERR);
	assert_int_equal(p.q[1].last_event, HW_EV_QP_ACCESS_ERR);
	wqe_rdma(&p.q[0], WQE_OP_READ, p.src, 8, p.dst, SIG, 0);
	go(&p);
	rig_expect_error(&p.scq[0], CQE_SYND_LOCAL_QP_OP);
	assert_int_equal(hw_qp_state(p.q[0].qp), HW_SQER);
	rig_pair_close(&p);
}

/* More READs under way than the responder has resources for: when depends on the schedule. */
static void too_many_reads(void **state)
{
	unsigned failed = 0;

	for (uint64_t seed = 0; seed < 40; seed++)
		for (int right = 0; right < 2; right++) {
			struct rig_pair p;
			struct hw_qp_mod mod = {.mask = HW_QP_RD_ATOMIC, .max_rd_atomic = 1};

			rig_pair_open(&p, (struct hw_config){.seed = seed}, (struct rig_opt){0});
			rig_connect(&p.q[0], &p.q[1]);
			if (right)
				assert_int_equal(hw_qp_modify(p.rig.dev, p.q[0].qp, HW_RTS, &mod), 0);
			mod = (struct hw_qp_mod){.mask = HW_QP_DEST_RD_ATOMIC, .max_dest_rd_atomic = 1};
			assert_int_equal(hw_qp_modify(p.rig.dev, p.q[1].qp, HW_RTS, &mod), 0);
			for (int i = 0; i < 8; i++)
				wqe_rdma(&p.q[0], WQE_OP_READ, p.src + 8 * i, 8, p.dst, 0, 0);
			go(&p);
			if (right)
				assert_int_equal(hw_qp_state(p.q[0].qp), HW_RTS);
			failed += hw_qp_state(p.q[0].qp) == HW_ERR;
			rig_pair_close(&p);
		}
	assert_in_range(failed, 20, 40);
}

static void self_connected_error(void **state)
{
	struct rig_pair p;
	uint8_t *w;

	rig_pair_open(&p, (struct hw_config){.seed = 1}, (struct rig_opt){0});
	rig_connect(&p.q[0], &p.q[0]);
	w = wqe_rdma(&p.q[0], WQE_OP_WRITE, p.src, 8, p.dst, 0, 0);
	put32(w + 24, 0);
	wqe_nop(&p.q[0], 1, 0);
	go(&p);
	rig_expect_error(&p.scq[0], CQE_SYND_REMOTE_ACCESS);
	rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
	assert_null(rig_cq_next(&p.scq[0]));
	rig_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_flushes),
		cmocka_unit_test(many_flushes),
		cmocka_unit_test(managed_flush),
		cmocka_unit_test(managed_recv_flush),
		cmocka_unit_test(key_checks),
		cmocka_unit_test(qp_access),
		cmocka_unit_test(misaligned_atomic),
		cmocka_unit_test(recv_errors),
		cmocka_unit_test(rnr),
		cmocka_unit_test(lost_peer),
		cmocka_unit_test(completion_modes),
		cmocka_unit_test(states),
		cmocka_unit_test(invalidation),
		cmocka_unit_test(invalidation_refused),
		cmocka_unit_test(unreliable),
		cmocka_unit_test(too_many_reads),
		cmocka_unit_test(self_connected_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
