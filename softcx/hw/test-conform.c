/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Behaviour that the device must have: completion modes, error CQEs, fences, doorbells.
 * docs/softcx-conformance.md names the source of each.
 */
#include "softcx/hw/cq.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "softcx/hw/turns.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* ---- completion modes ------------------------------------------------------------------- */

static uint8_t mode_flag(unsigned mode)
{
	return (uint8_t)(mode << WQE_CE_SHIFT);
}

/* Success: modes 2 and 3. Failure: all. Flush: all but 1, which reports the first error only. */
static void completion_modes(void **state)
{
	for (unsigned mode = 0; mode < 4; mode++) {
		struct rig_one o;

		rig_one_start(&o, mode);
		wqe_nop(&o.q, 1, mode_flag(mode));
		rig_one_go(&o);
		assert_int_equal(rig_cq_count(&o.scq), mode >= 2);
		wqe_raw(&o.q, 0x3e, 0, 1, mode_flag(mode), 0);
		for (unsigned flushed = 0; flushed < 4; flushed++)
			wqe_nop(&o.q, 1, mode_flag(flushed));
		rig_one_go(&o);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP)), 1);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 2);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 4);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&o.scq, CQE_SYND_FLUSH)), 5);
		assert_null(rig_cq_next(&o.scq));
		rig_one_close(&o);
	}
}

/* Each of them, signalled, in order: WAIT and the enables have CQEs like all others. */
static void signalled_sync(void **state)
{
	struct rig_one o;
	struct rig_qp c;

	rig_one_start(&o, 1);
	rig_qp_new_with(&o.rig, &c, &o.rcq, &o.rcq, (struct rig_opt){.managed = true, .managed_recv = true});
	rig_connect(&c, &c);
	wqe_wait(&o.q, hw_cqn(o.scq.cq), 0xffffff, SIG);
	wqe_enable(&o.q, WQE_OP_SEND_EN, hw_qpn(c.qp), 0, SIG);
	wqe_enable(&o.q, WQE_OP_RECV_EN, hw_qpn(c.qp), 0, SIG);
	rig_one_go(&o);
	assert_int_equal(rig_expect(&o.scq, CQE_OP_REQ)[56], WQE_OP_WAIT);
	assert_int_equal(rig_expect(&o.scq, CQE_OP_REQ)[56], WQE_OP_SEND_EN);
	assert_int_equal(rig_expect(&o.scq, CQE_OP_REQ)[56], WQE_OP_RECV_EN);
	rig_destroy(&c);
	rig_one_close(&o);
}

/* CQEs of 128 bytes: the second half is what 64-byte ones are; owner bits over many laps; collapsed ones,
 * too. */
static void cqe_sizes(void **state)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		struct hw_cq_attr attr = {
			.log_size = 2, .cqe_bytes = kind & 1 ? 128 : 64, .oi = kind & 2, .cc = kind & 2};
		struct rig_one o;

		rig_one_open(&o, (struct hw_config){.seed = kind}, attr, (struct rig_opt){0});
		for (uint16_t i = 0; i < 100; i++) {
			const uint8_t *cqe = o.scq.ring + o.scq.cqe_bytes - 64;

			wqe_nop(&o.q, 1, SIG);
			rig_one_go(&o);
			if (attr.cc) /* the owner bit goes on as if it were not collapsed */
				assert_int_equal(cqe[63] & 1, i >> 2 & 1);
			else
				cqe = rig_expect(&o.scq, CQE_OP_REQ);
			assert_int_equal(rig_cqe_idx(cqe), i);
			assert_int_equal(wqe_get32(cqe + 56), hw_qpn(o.q.qp)); /* opcode NOP */
		}
		assert_int_equal(hw_cq_producer(o.scq.cq), 100);
		rig_one_close(&o);
	}
}

/* ---- errors ----------------------------------------------------------------------------- */

static void short_atomic(struct rig_pair *p)
{
	put32(wqe_atomic(&p->q[0], WQE_OP_FETCH_ADD, p->src, p->dst, 1, 0, SIG) + 48, 7);
}

static void wrong_index(struct rig_pair *p)
{
	wqe_nop(&p->q[0], 1, SIG)[2] ^= 1;
}

static void no_lkey(struct rig_pair *p)
{
	put32(wqe_rdma(&p->q[0], WQE_OP_WRITE, p->src, 8, p->dst, SIG, 0) + 36, 0);
}

static void no_rkey(struct rig_pair *p)
{
	put32(wqe_rdma(&p->q[0], WQE_OP_WRITE, p->src, 8, p->dst, SIG, 0) + 24, 0);
}

static void crooked_atomic(struct rig_pair *p)
{
	wqe_atomic(&p->q[0], WQE_OP_FETCH_ADD, p->src, p->dst + 4, 1, 0, SIG);
}

static void narrow_recv(struct rig_pair *p)
{
	rig_recv(&p->q[1], 1, p->dst, 7);
	wqe_send(&p->q[0], WQE_OP_SEND, p->src, 8, SIG, 0);
}

static void recv_without_key(struct rig_pair *p)
{
	rig_recv(&p->q[1], 1, p->dst, 8);
	put32(p->q[1].rq + 4, 0x5555);
	wqe_send(&p->q[0], WQE_OP_SEND, p->src, 8, SIG, 0);
}

static void silent_peer(struct rig_pair *p)
{
	rig_qp_to(&p->q[1], HW_RST);
	wqe_rdma(&p->q[0], WQE_OP_WRITE, p->src, 8, p->dst, SIG, 0);
}

static void no_recv(struct rig_pair *p)
{
	struct hw_qp_mod mod = {.mask = HW_QP_RNR_RETRY, .rnr_retry = 1};

	assert_int_equal(hw_qp_modify(p->rig.dev, p->q[0].qp, HW_RTS, &mod), 0);
	wqe_send(&p->q[0], WQE_OP_SEND, p->src, 8, SIG, 0);
}

/*
 * Every syndrome that the device produces by itself, its vendor syndrome, what becomes of the other side. The
 * fields of an error CQE stand where software looks for them.
 */
static void syndromes(void **state)
{
	static const struct {
		void (*cause)(struct rig_pair *p);
		uint8_t syndrome, vendor;
		uint8_t peer, peer_vendor; /* error CQE of the receiver, 0: none */
		enum hw_qp_state peer_state;
		unsigned peer_event; /* 0: none */
	} t[] = {
		{short_atomic, CQE_SYND_LOCAL_LENGTH, 0x92, 0, 0, HW_RTS, 0},
		{wrong_index, CQE_SYND_LOCAL_QP_OP, 0x68, 0, 0, HW_RTS, 0},
		{no_lkey, CQE_SYND_LOCAL_PROT, 0x33, 0, 0, HW_RTS, 0},
		{no_rkey, CQE_SYND_REMOTE_ACCESS, 0x88, 0, 0, HW_ERR, HW_EV_QP_ACCESS_ERR},
		{crooked_atomic, CQE_SYND_REMOTE_INVAL, 0x8a, 0, 0, HW_ERR, HW_EV_QP_REQ_ERR},
		{narrow_recv, CQE_SYND_REMOTE_INVAL, 0x8a, CQE_SYND_LOCAL_LENGTH, 0x92, HW_ERR, 0},
		{recv_without_key, CQE_SYND_REMOTE_OP, 0x89, CQE_SYND_LOCAL_PROT, 0x33, HW_ERR, 0},
		{silent_peer, CQE_SYND_RETRY, 0x81, 0, 0, HW_RST, 0},
		{no_recv, CQE_SYND_RNR_RETRY, 0x87, 0, 0, HW_RTS, 0},
	};

	for (size_t i = 0; i < COUNT(t); i++) {
		const uint8_t *cqe;
		struct rig_pair p;

		rig_pair_open(&p, (struct hw_config){.seed = i}, (struct rig_opt){0});
		rig_connect(&p.q[0], &p.q[1]);
		t[i].cause(&p);
		wqe_nop(&p.q[0], 1, 0);
		rig_ring(&p.q[0]);
		rig_run(&p.rig);
		rig_settle(&p.rig);
		cqe = rig_expect_error(&p.scq[0], t[i].syndrome);
		assert_int_equal(rig_cqe_op(cqe), CQE_OP_REQ_ERR);
		assert_int_equal(cqe[54], t[i].vendor);
		assert_int_equal(cqe[52] | cqe[53], 0);
		assert_int_equal(wqe_get32(cqe + 32), 0x123456);
		assert_int_equal(wqe_get32(cqe + 56) & 0xffffff, hw_qpn(p.q[0].qp));
		assert_int_equal(rig_cqe_idx(cqe), 0);
		cqe = rig_expect_error(&p.scq[0], CQE_SYND_FLUSH);
		assert_int_equal(cqe[54], 0xf9);
		assert_int_equal(rig_cqe_idx(cqe), 1);
		assert_null(rig_cq_next(&p.scq[0]));
		assert_int_equal(hw_qp_state(p.q[0].qp), HW_ERR);
		assert_int_equal(hw_qp_state(p.q[1].qp), t[i].peer_state);
		if (t[i].peer) {
			cqe = rig_expect_error(&p.rcq[1], t[i].peer);
			assert_int_equal(rig_cqe_op(cqe), CQE_OP_RESP_ERR);
			assert_int_equal(cqe[54], t[i].peer_vendor);
			assert_int_equal(rig_cqe_idx(cqe), 0);
		}
		assert_null(rig_cq_next(&p.rcq[1]));
		assert_int_equal(p.q[1].events, t[i].peer_event != 0);
		if (t[i].peer_event)
			assert_int_equal(p.q[1].last_event, t[i].peer_event);
		rig_pair_close(&p);
	}
}

/* The others can be asked for. */
static void asked_for(void **state)
{
	static const uint8_t synd[] = {0x10, 0x11, 0x22}; /* bad response, local access, aborted */

	for (size_t i = 0; i < sizeof(synd); i++) {
		struct hw_fault fault = {.id = 1,
			.kind = HW_FAULT_ERROR,
			.opcode = -1,
			.at = 2,
			.count = 1,
			.syndrome = synd[i]};
		struct rig_one o;

		rig_one_start(&o, i);
		assert_int_equal(hw_fault_add(o.rig.dev, &fault), 0);
		for (int n = 0; n < 3; n++)
			wqe_nop(&o.q, 1, SIG);
		rig_one_go(&o);
		rig_expect(&o.scq, CQE_OP_REQ);
		rig_expect_error(&o.scq, synd[i]);
		rig_expect_error(&o.scq, CQE_SYND_FLUSH);
		rig_one_close(&o);
	}
}

/* Error and flush CQEs count like any other: they release a WAIT of another queue. */
static void errors_release_waits(void **state)
{
	struct rig_one o;
	struct rig_qp bad;

	rig_one_start(&o, 1);
	rig_qp_new(&o.rig, &bad, &o.rcq, &o.rcq);
	rig_connect(&bad, &bad);
	wqe_wait(&o.q, hw_cqn(o.rcq.cq), 2, 0);
	wqe_nop(&o.q, 1, SIG);
	rig_one_go(&o);
	assert_null(rig_cq_next(&o.scq));
	wqe_raw(&bad, 0x3e, 0, 1, 0, 0);
	wqe_nop(&bad, 1, 0);
	wqe_nop(&bad, 1, 0); /* none of them signalled */
	rig_ring(&bad);
	rig_run(&o.rig);
	rig_expect(&o.scq, CQE_OP_REQ);
	rig_destroy(&bad);
	rig_one_close(&o);
}

/* ---- fences ----------------------------------------------------------------------------- */

/* For each mode: whether a SEND_EN waits for an earlier READ, and for an earlier WRITE. It never does where
 * it heeds no fence. */
static void check_fence_modes(bool heeded)
{
	static const struct {
		enum wqe_fence mode;
		bool reads, writes;
	} t[] = {
		{WQE_FM_NONE, false, false},
		{WQE_FM_SMALL, false, false},
		{WQE_FM_FENCE, true, false},
		{WQE_FM_STRONG, true, true},
		{WQE_FM_SMALL_AND_FENCE, true, false},
	};

	for (size_t i = 0; i < COUNT(t); i++)
		for (int write = 0; write < 2; write++) {
			unsigned good = 0;

			for (uint64_t seed = 0; seed < 200; seed++) {
				uint8_t fm = (uint8_t)(t[i].mode << WQE_FM_SHIFT);
				struct rig_one o;
				struct rig_qp c;
				uint64_t *w;

				rig_one_open(&o, (struct hw_config){.seed = seed, .no_sync_fence = !heeded},
					(struct hw_cq_attr){.log_size = 6}, (struct rig_opt){0});
				rig_qp_new_with(
					&o.rig, &c, &o.rcq, &o.rcq, (struct rig_opt){.managed = true});
				rig_connect(&c, &c);
				w = rig_alloc(&o.rig, 64);
				w[0] = 1;
				wqe_rdma(&c, WQE_OP_WRITE, w + 1, 8, w + 2, 0, 0);
				wqe_rdma(&o.q, write ? WQE_OP_WRITE : WQE_OP_READ, write ? w : w + 1, 8,
					write ? w + 1 : w, 0, 0);
				wqe_enable(&o.q, WQE_OP_SEND_EN, hw_qpn(c.qp), 1, fm);
				rig_one_go(&o);
				good += w[2] == 1;
				rig_destroy(&c);
				rig_one_close(&o);
			}
			if (heeded && (write ? t[i].writes : t[i].reads))
				assert_int_equal(good, 200);
			else
				assert_in_range(good, 0, 190);
		}
}

static void fence_modes(void **state)
{
	check_fence_modes(true);
	check_fence_modes(false);
}

/* ---- queues that cannot be ---------------------------------------------------------------- */

/* Rings are powers of two up to 32768, the reserved lkey (physical addresses) is not to be had. */
static void queue_limits(void **state)
{
	static const struct {
		uint32_t wqebbs, rq_wqes, stride;
		bool reserved_lkey, ok;
	} t[] = {
		{64, 16, 64, false, true},
		{1, 1, 16, false, true},
		{64, 16, 64, true, false},
		{65, 16, 64, false, false},
		{65536, 16, 64, false, false},
		{0, 16, 64, false, false},
		{64, 15, 64, false, false},
		{64, 16, 8, false, false},
		{64, 16, 48, false, false},
		{64, 65536, 16, false, false},
	};
	struct rig_one o;

	rig_one_start(&o, 1);
	for (size_t i = 0; i < COUNT(t); i++) {
		struct hw_qp_attr attr = {.pdn = o.rig.pdn,
			.scq = o.scq.cq,
			.rcq = o.rcq.cq,
			.sq = &o.rig.mem,
			.sq_wqebbs = t[i].wqebbs,
			.rq = &o.rig.mem,
			.rq_wqes = t[i].rq_wqes,
			.rq_stride = t[i].stride,
			.db = &o.rig.mem,
			.uar = hw_uar_index(o.rig.uar),
			.reserved_lkey = t[i].reserved_lkey};
		struct hw_qp *qp;

		assert_int_equal(hw_qp_create(o.rig.dev, &attr, &qp), t[i].ok ? 0 : -EINVAL);
		if (t[i].ok)
			assert_int_equal(hw_qp_destroy(o.rig.dev, qp), 0);
	}
	rig_one_close(&o);
}

/* ---- rates ------------------------------------------------------------------------------ */

/* A limit, alone or inside a lower one: so many bytes take so long at least. READs and NOPs cost nothing. */
static void rates(void **state)
{
	enum { MBPS = 160, MESSAGES = 16, BYTES = 16384, NS = MESSAGES * BYTES * 8000ll / MBPS };

	for (int inside = 0; inside < 2; inside++) {
		struct hw_rate *outer, *rate;
		struct rig_one o;
		uint64_t began;
		uint8_t *src, *dst;

		rig_one_start(&o, 1);
		src = rig_alloc(&o.rig, BYTES);
		dst = rig_alloc(&o.rig, BYTES);
		assert_int_equal(hw_rate_create(o.rig.dev, NULL, &outer), 0);
		assert_int_equal(hw_rate_create(o.rig.dev, outer, &rate), 0);
		hw_rate_set(inside ? outer : rate, MBPS);
		hw_qp_limit(o.q.qp, rate);
		assert_int_equal(hw_rate_destroy(o.rig.dev, rate), -EBUSY);
		assert_int_equal(hw_rate_destroy(o.rig.dev, outer), -EBUSY);
		began = clock_ns();
		for (int i = 0; i < MESSAGES; i++)
			wqe_rdma(&o.q, WQE_OP_WRITE, src, BYTES, dst, SIG, 0);
		wqe_nop(&o.q, 1, SIG);
		rig_one_go(&o);
		assert_true(rig_cq_count(&o.scq) < MESSAGES + 1);
		rig_settle(&o.rig);
		assert_true(clock_ns() - began + HW_RATE_BURST_NS >= NS);
		rig_cq_count(&o.scq);
		assert_int_equal(hw_cq_producer(o.scq.cq), MESSAGES + 1);
		/* none: as before */
		hw_qp_limit(o.q.qp, NULL);
		assert_int_equal(hw_rate_destroy(o.rig.dev, rate), 0);
		assert_int_equal(hw_rate_destroy(o.rig.dev, outer), 0);
		for (int i = 0; i < MESSAGES; i++)
			wqe_rdma(&o.q, WQE_OP_WRITE, src, BYTES, dst, SIG, 0);
		rig_one_go(&o);
		assert_int_equal(rig_cq_count(&o.scq), MESSAGES);
		rig_one_close(&o);
	}
}

/* ---- doorbells -------------------------------------------------------------------------- */

/* The record holds what is posted. A store to the page only makes the device look: any register, any value.
 */
static void doorbells(void **state)
{
	static const unsigned registers[] = {0x800, 0x900, 0xa00, 0xb00};
	struct rig_one o;

	rig_one_start(&o, 1);
	for (size_t i = 0; i < 4; i++) {
		wqe_nop(&o.q, 1, SIG);
		o.q.db[1] = htobe32(o.q.pi);
		rig_run(&o.rig);
		assert_null(rig_cq_next(&o.scq)); /* nobody rang */
		/* another queue rang since, or a copy of a WQE was written: it is all the same */
		o.rig.page[registers[i] / 8] = 1;
		rig_run(&o.rig);
		rig_expect(&o.scq, CQE_OP_REQ);
	}
	/* a ring without a record: nothing to do */
	wqe_nop(&o.q, 1, SIG);
	o.rig.page[0x800 / 8] = htobe64((uint64_t)hw_qpn(o.q.qp) << 8);
	rig_run(&o.rig);
	assert_null(rig_cq_next(&o.scq));
	rig_one_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_modes),
		cmocka_unit_test(signalled_sync),
		cmocka_unit_test(cqe_sizes),
		cmocka_unit_test(syndromes),
		cmocka_unit_test(asked_for),
		cmocka_unit_test(errors_release_waits),
		cmocka_unit_test(fence_modes),
		cmocka_unit_test(queue_limits),
		cmocka_unit_test(rates),
		cmocka_unit_test(doorbells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
