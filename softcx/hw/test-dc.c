/* SPDX-License-Identifier: BSD-2-Clause */
/* The dynamically connected transport: what an initiator's WQEs reach, and what they do not. */
#include "softcx/hw/test-rig.h"

#include <errno.h>
#include <string.h>

enum { SPACE = 256, KEY = 0x1122, STRIDE = 32 };

struct dc {
	struct rig rig;
	struct rig_cq scq, rcq;
	struct rig_qp q; /* the initiator */
	struct hw_srq *srq;
	uint32_t *srq_db;
	uint8_t *ring;
	struct hw_qp *target;
	uint8_t *src, *dst, gid[16];
};

static void target_to(struct dc *d, enum hw_qp_state to, unsigned access)
{
	const struct hw_qp_mod mod = {
		.mask = HW_QP_ACCESS | HW_QP_RNR_TIMER, .access = access, .min_rnr_timer = 1};

	assert_int_equal(hw_qp_modify(d->rig.dev, d->target, to, &mod), 0);
}

static void no_event(void *arg, int event)
{
}

static void open_dc(struct dc *d, unsigned access)
{
	const struct hw_config cfg = {.seed = 3};
	struct hw_srq_attr srq = {.wqes = 4, .stride = STRIDE, .cyclic = true, .on_event = no_event};
	struct hw_qp_attr attr = {.type = HW_DCT, .dc_key = KEY, .on_event = no_event};
	struct hw_qp_mod mod;

	memset(d, 0, sizeof(*d));
	rig_open(&d->rig, &cfg);
	rig_cq_new(&d->rig, &d->scq, 5);
	rig_cq_new(&d->rig, &d->rcq, 5);
	d->src = rig_alloc(&d->rig, SPACE);
	d->dst = rig_alloc(&d->rig, SPACE);
	for (unsigned i = 0; i < SPACE; i++)
		d->src[i] = (uint8_t)(i + 1);
	d->ring = rig_alloc(&d->rig, 4 * STRIDE);
	d->srq_db = rig_alloc(&d->rig, 8);
	srq.pdn = attr.pdn = d->rig.pdn;
	srq.buf = srq.db = &d->rig.mem;
	srq.buf_off = rig_off(&d->rig, d->ring);
	srq.db_off = rig_off(&d->rig, d->srq_db);
	assert_int_equal(hw_srq_create(d->rig.dev, &srq, &d->srq), 0);
	attr.scq = attr.rcq = d->rcq.cq;
	assert_int_equal(hw_qp_create(d->rig.dev, &attr, &d->target), -EINVAL); /* it receives by an SRQ */
	attr.srq = d->srq;
	assert_int_equal(hw_qp_create(d->rig.dev, &attr, &d->target), 0);
	target_to(d, HW_INIT, access);
	target_to(d, HW_RTR, access);
	/* the rig gives an RQ to queues without an SRQ, and an initiator has none */
	rig_qp_new_with(&d->rig, &d->q, &d->scq, &d->scq, (struct rig_opt){.type = HW_DCI, .srq = d->srq});
	rig_default_mod(&mod);
	mod.mask &= ~(unsigned)(HW_QP_AV | HW_QP_DEST);
	mod.rnr_retry = 1;
	assert_int_equal(hw_qp_modify(d->rig.dev, d->q.qp, HW_INIT, &mod), 0);
	assert_int_equal(hw_qp_modify(d->rig.dev, d->q.qp, HW_RTR, &mod), 0);
	assert_int_equal(hw_qp_modify(d->rig.dev, d->q.qp, HW_RTS, &mod), 0);
	assert_true(hw_gid(d->rig.dev, 0, d->gid));
}

static void close_dc(struct dc *d)
{
	rig_destroy(&d->q);
	assert_int_equal(hw_qp_destroy(d->rig.dev, d->target), 0);
	assert_int_equal(hw_srq_destroy(d->rig.dev, d->srq), 0);
	assert_int_equal(hw_cq_destroy(d->rig.dev, d->scq.cq), 0);
	assert_int_equal(hw_cq_destroy(d->rig.dev, d->rcq.cq), 0);
	rig_close(&d->rig);
}

/* A WQE of @ds segments behind the address of the target. */
static uint8_t *put(struct dc *d, uint8_t opcode, uint8_t ds)
{
	uint8_t *w = wqe_raw(&d->q, opcode, 0, (uint8_t)(4 + ds), SIG, 0);

	put64(w + WQE_DC_KEY, KEY);
	put32(w + WQE_UD_DQPN, hw_qpn(d->target) | WQE_UD_EXTENDED);
	w[WQE_UD_SPORT] = 0xc0;
	hw_gid_mac(d->gid, w + WQE_UD_RMAC);
	w[WQE_UD_HOP_LIMIT] = 64;
	memcpy(w + WQE_UD_RGID, d->gid, sizeof(d->gid));
	return w + 64;
}

static uint8_t *put_write(struct dc *d)
{
	uint8_t *w = put(d, WQE_OP_WRITE, 2);

	put64(w, (uintptr_t)d->dst);
	put32(w + 8, d->rig.key);
	put_seg(w + 16, d->src, 16, d->rig.key);
	return w - 64;
}

static void go(struct dc *d)
{
	rig_ring(&d->q);
	rig_run(&d->rig);
	rig_settle(&d->rig);
}

static void reaches(void **state)
{
	struct dc d;
	uint8_t *w;

	open_dc(&d, HW_REMOTE_WRITE | HW_REMOTE_READ);
	put_write(&d);
	go(&d);
	rig_expect(&d.scq, CQE_OP_REQ);
	assert_memory_equal(d.dst, d.src, 16);
	w = put(&d, WQE_OP_WRITE, 2); /* inline data */
	put64(w, (uintptr_t)d.dst + 64);
	put32(w + 8, d.rig.key);
	put32(w + 16, WQE_INLINE | 4);
	memcpy(w + 20, "text", 4);
	go(&d);
	rig_expect(&d.scq, CQE_OP_REQ);
	assert_memory_equal(d.dst + 64, "text", 4);
	put_seg(d.ring + 16, d.dst + 128, 16, d.rig.key);
	d.srq_db[0] = htobe32(1);
	put_seg(put(&d, WQE_OP_SEND, 1), d.src, 16, d.rig.key);
	go(&d);
	rig_expect(&d.scq, CQE_OP_REQ);
	rig_expect(&d.rcq, CQE_OP_RESP_SEND);
	assert_memory_equal(d.dst + 128, d.src, 16);
	wqe_nop(&d.q, 1, SIG); /* which has no address */
	go(&d);
	rig_expect(&d.scq, CQE_OP_REQ);
	close_dc(&d);
}

static void does_not_reach(void **state)
{
	enum {
		SHORT,
		PLAIN,
		OTHER_KEY,
		NO_TARGET,
		NOT_A_TARGET,
		OTHER_PORT,
		NOT_READY,
		NO_RIGHT,
		NO_RECV,
		CASES
	};
	static const uint8_t syndrome[CASES] = {
		[SHORT] = CQE_SYND_LOCAL_QP_OP,
		[PLAIN] = CQE_SYND_LOCAL_QP_OP,
		[OTHER_KEY] = CQE_SYND_RETRY,
		[NO_TARGET] = CQE_SYND_RETRY,
		[NOT_A_TARGET] = CQE_SYND_RETRY,
		[OTHER_PORT] = CQE_SYND_RETRY,
		[NOT_READY] = CQE_SYND_RETRY,
		[NO_RIGHT] = CQE_SYND_REMOTE_ACCESS,
		[NO_RECV] = CQE_SYND_RNR_RETRY,
	};

	for (int bad = 0; bad < CASES; bad++) {
		struct dc d;
		uint8_t *w;

		open_dc(&d, bad == NO_RIGHT ? HW_REMOTE_READ : HW_REMOTE_WRITE);
		if (bad == NOT_READY)
			assert_int_equal(hw_qp_modify(d.rig.dev, d.target, HW_RST, NULL), 0);
		if (bad == NO_RECV) {
			put_seg(put(&d, WQE_OP_SEND, 1), d.src, 16, d.rig.key);
		} else if (bad == SHORT) {
			wqe_raw(&d.q, WQE_OP_WRITE, 0, 3, SIG, 0);
		} else {
			w = put_write(&d);
			if (bad == PLAIN)
				w[WQE_UD_DQPN] = 0;
			if (bad == OTHER_KEY)
				w[WQE_DC_KEY] = 1;
			if (bad == NO_TARGET)
				w[WQE_UD_DQPN + 1] ^= 1;
			if (bad == NOT_A_TARGET)
				put32(w + WQE_UD_DQPN, hw_qpn(d.q.qp) | WQE_UD_EXTENDED);
			if (bad == OTHER_PORT)
				w[WQE_UD_RGID + 15] ^= 1;
		}
		go(&d);
		rig_expect_error(&d.scq, syndrome[bad]);
		assert_int_equal(hw_qp_state(d.q.qp), HW_ERR);
		if (bad != NOT_READY) /* it serves the next initiator */
			assert_int_equal(hw_qp_state(d.target), HW_RTR);
		assert_int_equal(d.dst[0], 0);
		close_dc(&d);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reaches),
		cmocka_unit_test(does_not_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
