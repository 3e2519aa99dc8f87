/* SPDX-License-Identifier: BSD-2-Clause */
/* What the silicon does where devices differ: each fact of a profile, beside a ConnectX-5. */
#include "softcx/hw/dev.h"
#include "softcx/hw/test-rig.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static struct profile profile;

/* A ConnectX-5 that differs in one fact. */
static struct hw_config with(enum profile_fact fact, uint64_t value)
{
	profile = *profile_default();
	profile.value[fact] = value;
	return (struct hw_config){.seed = 1, .profile = &profile};
}

static struct hw_config cx5(void)
{
	return (struct hw_config){.seed = 1};
}

static void no_masked_atomics(void **state)
{
	struct rig_one o;

	for (unsigned form = 0; form < 3; form++) {
		uint64_t *w;

		rig_one_open(&o, with(PROFILE_MASKED_ATOMICS, 0), (struct hw_cq_attr){.log_size = 4},
			(struct rig_opt){0});
		w = rig_alloc(&o.rig, 64);
		if (form == 0)
			wqe_atomic(&o.q, WQE_OP_FETCH_ADD, w + 1, w, 5, 0, SIG);
		else if (form == 1)
			wqe_masked_faa8(&o.q, w + 1, w, 5, 0, SIG);
		else
			wqe_masked_cas8(&o.q, w + 1, w, 5, 0, ~0ull, ~0ull, SIG);
		rig_one_go(&o);
		if (form == 0)
			rig_expect(&o.scq, CQE_OP_REQ);
		else
			rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP);
		assert_int_equal(w[0] != 0, form == 0);
		rig_one_close(&o);
	}
}

/* An opcode that the device lacks ends the queue, and has done nothing */
static void no_opcodes(void **state)
{
	static const enum profile_fact without[] = {
		PROFILE_FACTS, PROFILE_CROSS_CHANNEL, PROFILE_IMMEDIATES, PROFILE_ATOMICS};

	for (unsigned f = 0; f < 4; f++)
		for (unsigned form = 1; form < 4; form++) {
			struct rig_one o;
			uint64_t *w;

			rig_one_open(&o, f ? with(without[f], 0) : cx5(), (struct hw_cq_attr){.log_size = 4},
				(struct rig_opt){0});
			w = rig_alloc(&o.rig, 64);
			w[0] = 7;
			rig_recv(&o.q, 1, w + 2, 8);
			if (form == 1) {
				wqe_nop(&o.q, 1, SIG);
				wqe_wait(&o.q, hw_cqn(o.scq.cq), 0, SIG);
			} else if (form == 2) {
				wqe_rdma(&o.q, WQE_OP_WRITE_IMM, w, 8, w + 1, SIG, 1);
			} else {
				wqe_atomic(&o.q, WQE_OP_FETCH_ADD, w + 1, w, 5, 0, SIG);
			}
			rig_one_go(&o);
			if (form == 1)
				rig_expect(&o.scq, CQE_OP_REQ);
			if (form == f)
				rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP);
			else
				rig_expect(&o.scq, CQE_OP_REQ);
			assert_int_equal(w[1] == 7, form > 1 && form != f);
			rig_one_close(&o);
		}
}

/* Of plain and of masked ones; what they do in memory is the same */
static void big_endian_atomics(void **state)
{
	const uint64_t was = 0x1122334455667788ull;

	for (unsigned form = 0; form < 6; form++) {
		bool host = form < 3;
		struct rig_one o;
		uint64_t *w;

		rig_one_open(&o, host ? cx5() : with(PROFILE_HOST_ATOMICS, 0),
			(struct hw_cq_attr){.log_size = 4}, (struct rig_opt){0});
		w = rig_alloc(&o.rig, 64);
		w[0] = was;
		if (form % 3 == 0)
			wqe_atomic(&o.q, WQE_OP_FETCH_ADD, w + 1, w, 5, 0, SIG);
		else if (form % 3 == 1)
			wqe_masked_faa8(&o.q, w + 1, w, 5, 0, SIG);
		else
			wqe_masked_cas8(&o.q, w + 1, w, was + 5, was, ~0ull, ~0ull, SIG);
		rig_one_go(&o);
		rig_expect(&o.scq, CQE_OP_REQ);
		assert_int_equal(w[0], was + 5);
		assert_int_equal(w[1], host ? was : __builtin_bswap64(was));
		rig_one_close(&o);
	}
}

/* A message to a managed RQ, and the RECV_EN for it. Returns whether the message arrived. */
static bool arrives(struct hw_config cfg)
{
	struct rig_opt managed = {.managed_recv = true};
	struct rig rig;
	struct rig_cq cq, rcq;
	struct rig_qp a, b;
	bool arrived;
	uint64_t *w;

	rig_open(&rig, &cfg);
	rig_cq_new(&rig, &cq, 4);
	rig_cq_new(&rig, &rcq, 4);
	rig_qp_new(&rig, &a, &cq, &rcq);
	rig_qp_new_with(&rig, &b, &rcq, &rcq, managed);
	rig_connect(&a, &b);
	w = rig_alloc(&rig, 64);
	w[0] = 42;
	rig_recv(&b, 1, w + 1, 8);
	wqe_enable(&b, WQE_OP_RECV_EN, hw_qpn(b.qp), 1, SIG);
	rig_ring(&b);
	rig_run(&rig);
	rig_expect(&rcq, CQE_OP_REQ); /* it completes in any case */
	wqe_send(&a, WQE_OP_SEND, w, 8, 0, 0);
	rig_ring(&a);
	rig_run(&rig);
	arrived = w[1] == 42;
	rig_destroy(&a);
	rig_destroy(&b);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, rcq.cq), 0);
	rig_close(&rig);
	return arrived;
}

static void no_recv_enable(void **state)
{
	assert_true(arrives(cx5()));
	assert_false(arrives(with(PROFILE_RECV_ENABLE, 0)));
}

static void short_wqes(void **state)
{
	enum { LIMIT = 256, HEAD = 36 }; /* control, remote address, the length of the inline segment */
	uint8_t data[LIMIT] = {1};
	struct rig_one o;

	for (unsigned longer = 0; longer < 2; longer++) {
		uint8_t *to;

		rig_one_open(&o, with(PROFILE_SEND_WQE, LIMIT), (struct hw_cq_attr){.log_size = 4},
			(struct rig_opt){0});
		to = rig_alloc(&o.rig, LIMIT);
		wqe_inline_write(&o.q, data, LIMIT - HEAD + longer, to, SIG);
		rig_one_go(&o);
		if (longer)
			rig_expect_error(&o.scq, CQE_SYND_LOCAL_QP_OP);
		else
			rig_expect(&o.scq, CQE_OP_REQ);
		rig_one_close(&o);
	}
}

/* As many queue pairs as there may be, and none more until one is gone. */
static void queue_limit(void **state)
{
	struct hw_config cfg = with(PROFILE_LOG_QPS, 3);
	struct rig_qp q[1 << 3];
	struct hw_qp *more;
	struct rig rig;
	struct rig_cq cq;
	struct hw_qp_attr attr = {0};

	rig_open(&rig, &cfg);
	rig_cq_new(&rig, &cq, 4);
	for (unsigned i = 0; i < 1 << 3; i++)
		rig_qp_new(&rig, &q[i], &cq, &cq);
	attr = (struct hw_qp_attr){
		.pdn = rig.pdn, .scq = cq.cq, .rcq = cq.cq, .db = &rig.mem, .uar = hw_uar_index(rig.uar)};
	assert_int_equal(hw_qp_create(rig.dev, &attr, &more), -ENOSPC);
	rig_destroy(&q[0]);
	assert_int_equal(hw_qp_create(rig.dev, &attr, &more), 0);
	assert_int_equal(hw_qp_destroy(rig.dev, more), 0);
	for (unsigned i = 1; i < 1 << 3; i++)
		rig_destroy(&q[i]);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	rig_close(&rig);
}

/* What the options --no-index-check and so on do, a profile does. */
static void unchecked(void **state)
{
	struct hw_config cfg = cx5();

	hw_config_complete(&cfg);
	assert_ptr_equal(cfg.profile, profile_default());
	assert_false(cfg.no_index_check || cfg.no_qpn_check || cfg.no_sync_fence || cfg.no_msg_limit);
	cfg = with(PROFILE_CHECKS_INDEX, 0);
	hw_config_complete(&cfg);
	assert_true(cfg.no_index_check && !cfg.no_qpn_check && !cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_CHECKS_QPN, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && cfg.no_qpn_check && !cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_SYNC_FENCE, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && !cfg.no_qpn_check && cfg.no_sync_fence && !cfg.no_msg_limit);
	cfg = with(PROFILE_MESSAGE_LIMIT, 0);
	hw_config_complete(&cfg);
	assert_true(!cfg.no_index_check && !cfg.no_qpn_check && !cfg.no_sync_fence && cfg.no_msg_limit);
	cfg.no_index_check = true; /* an option comes on top */
	hw_config_complete(&cfg);
	assert_true(cfg.no_index_check);
}

/* A queue that enables WQEs of a managed one, @q, which is not connected yet */
struct master {
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp m, q;
};

static void master_open(struct master *t, struct hw_config cfg)
{
	rig_open(&t->rig, &cfg);
	rig_cq_new_attr(&t->rig, &t->cq, (struct hw_cq_attr){.log_size = 4, .cc = true, .oi = true});
	rig_qp_new(&t->rig, &t->m, &t->cq, &t->cq);
	rig_qp_new_with(&t->rig, &t->q, &t->cq, &t->cq, (struct rig_opt){.managed = true});
	rig_connect(&t->m, &t->m);
}

static void master_enable(struct master *t, uint32_t index)
{
	wqe_enable(&t->m, WQE_OP_SEND_EN, hw_qpn(t->q.qp), index, 0);
	rig_ring(&t->m);
	rig_run(&t->rig);
}

static uint16_t master_done(const struct master *t)
{
	struct hw_qp_progress at;

	hw_qp_progress(t->q.qp, &at);
	return at.sq_done;
}

static void master_close(struct master *t)
{
	rig_destroy(&t->m);
	rig_destroy(&t->q);
	assert_int_equal(hw_cq_destroy(t->rig.dev, t->cq.cq), 0);
	rig_close(&t->rig);
}

/*
 * A managed queue of eight NOPs. Number @first is executed, then numbers @first + 1 and later become WRITEs
 * and are executed. Returns a bit for each that was executed as a WRITE.
 */
static unsigned patched(struct hw_config cfg, unsigned first)
{
	enum { WQES = 8 };
	struct master t;
	unsigned done = 0;
	uint8_t *op[WQES];
	uint64_t *w;

	master_open(&t, cfg);
	rig_connect(&t.q, &t.q);
	w = rig_alloc(&t.rig, (WQES + 1) * sizeof(*w));
	w[WQES] = 42;
	for (unsigned i = 0; i < WQES; i++) {
		op[i] = wqe_rdma(&t.q, WQE_OP_WRITE, w + WQES, 8, w + i, 0, 0) + 3;
		*op[i] = WQE_OP_NOP;
	}
	master_enable(&t, first + 1);
	for (unsigned i = first + 1; i < WQES; i++)
		*op[i] = WQE_OP_WRITE;
	master_enable(&t, WQES);
	for (unsigned i = 0; i < WQES; i++)
		done |= (unsigned)(w[i] == 42) << i;
	master_close(&t);
	return done;
}

static void fetch_groups(void **state)
{
	struct hw_config lenient = with(PROFILE_FETCH_GROUP, 256);

	lenient.lenient = true;
	for (unsigned first = 0; first < 7; first++) {
		unsigned behind = 0xffu << (first + 1) & 0xff;

		assert_int_equal(patched(cx5(), first), behind);
		assert_int_equal(patched(lenient, first), behind);
		/* the group has four: those of the first one's are stale */
		assert_int_equal(patched(with(PROFILE_FETCH_GROUP, 256), first), first < 4 ? 0xf0 : 0);
		assert_int_equal(patched(with(PROFILE_FETCH_GROUP, 128), first),
			0xffu << ((first / 2 + 1) * 2) & 0xff);
		assert_int_equal(patched(with(PROFILE_FETCH_GROUP, 4096), first), 0);
	}
}

/* Enables the RECVs of @b up to number @to, from @from on, and sends a message to each of these */
static void fill_recvs(
	struct rig_qp *a, struct rig_qp *b, const uint64_t *message, unsigned from, unsigned to)
{
	wqe_enable(a, WQE_OP_RECV_EN, hw_qpn(b->qp), to, 0);
	for (; from < to; from++)
		wqe_send(a, WQE_OP_SEND, message, sizeof(*message), 0, 0);
	rig_ring(a);
	rig_run(a->rig);
}

/*
 * The first RECVs of a managed queue are used, up to @first; then the others get new places, and are enabled.
 * Bit i: RECV i had its new place.
 */
static unsigned moved(struct hw_config cfg, unsigned first)
{
	enum { RECVS = 8, MESSAGE = 2 * RECVS, WORDS };
	struct rig_opt managed = {.managed_recv = true}; /* RECVs of 64 bytes */
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp a, b;
	unsigned done = 0;
	uint64_t *w;

	rig_open(&rig, &cfg);
	rig_cq_new_attr(&rig, &cq, (struct hw_cq_attr){.log_size = 4, .cc = true, .oi = true});
	rig_qp_new(&rig, &a, &cq, &cq);
	rig_qp_new_with(&rig, &b, &cq, &cq, managed);
	rig_connect(&a, &b);
	w = rig_alloc(&rig, WORDS * sizeof(*w));
	w[MESSAGE] = 42;
	for (unsigned i = 0; i < RECVS; i++)
		rig_recv(&b, 1, w + i, sizeof(*w));
	fill_recvs(&a, &b, w + MESSAGE, 0, first + 1);
	b.rpi = first + 1;
	for (unsigned i = first + 1; i < RECVS; i++)
		rig_recv(&b, 1, w + RECVS + i, sizeof(*w));
	fill_recvs(&a, &b, w + MESSAGE, first + 1, RECVS);
	for (unsigned i = 0; i < RECVS; i++)
		done |= (unsigned)(w[RECVS + i] == 42) << i;
	rig_destroy(&a);
	rig_destroy(&b);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	rig_close(&rig);
	return done;
}

static void recv_groups(void **state)
{
	struct hw_config lenient = with(PROFILE_RECV_FETCH, 256);

	lenient.lenient = true;
	for (unsigned first = 0; first < 7; first++) {
		unsigned behind = 0xffu << (first + 1) & 0xff;

		assert_int_equal(moved(cx5(), first), behind);
		assert_int_equal(moved(lenient, first), behind);
		/* the group has four: those of the first one's are stale */
		assert_int_equal(moved(with(PROFILE_RECV_FETCH, 256), first), first < 4 ? 0xf0 : 0);
		assert_int_equal(
			moved(with(PROFILE_RECV_FETCH, 128), first), 0xffu << ((first / 2 + 1) * 2) & 0xff);
		assert_int_equal(moved(with(PROFILE_RECV_FETCH, 32), first), behind); /* less than one */
		assert_int_equal(moved(with(PROFILE_RECV_FETCH, 4096), first), 0);
	}
}

/*
 * A managed queue of which two WQEs are executed and two more enabled, behind a WAIT, fails with @record in
 * its doorbell record. Returns the CQEs that it gives.
 */
static unsigned flushed(struct hw_config cfg, uint16_t record)
{
	struct rig_opt managed = {.managed = true};
	struct rig rig;
	struct rig_cq cq, other;
	struct rig_qp m, q;
	unsigned n;

	rig_open(&rig, &cfg);
	rig_cq_new_attr(&rig, &cq, (struct hw_cq_attr){.log_size = 4, .cc = true, .oi = true});
	rig_cq_new(&rig, &other, 4);
	rig_qp_new(&rig, &m, &other, &other);
	rig_qp_new_with(&rig, &q, &cq, &cq, managed);
	rig_connect(&m, &m);
	rig_connect(&q, &q);
	wqe_nop(&q, 1, 0);
	wqe_nop(&q, 1, 0);
	wqe_wait(&q, hw_cqn(other.cq), 7, 0);
	for (unsigned i = 0; i < 4; i++)
		wqe_nop(&q, 1, 0);
	wqe_enable(&m, WQE_OP_SEND_EN, hw_qpn(q.qp), 4, 0);
	rig_ring(&m);
	rig_run(&rig);
	q.db[1] = htobe32(record);
	assert_int_equal(hw_qp_modify(rig.dev, q.qp, HW_ERR, NULL), 0);
	rig_run(&rig);
	n = hw_cq_producer(cq.cq);
	rig_destroy(&m);
	rig_destroy(&q);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	assert_int_equal(hw_cq_destroy(rig.dev, other.cq), 0);
	rig_close(&rig);
	return n;
}

static void flush_to_doorbell(void **state)
{
	assert_int_equal(flushed(cx5(), 0), 2);
	assert_int_equal(flushed(cx5(), 5), 2);
	assert_int_equal(flushed(with(PROFILE_FLUSH, PROFILE_FLUSH_DOORBELL), 5), 3);
	assert_int_equal(flushed(with(PROFILE_FLUSH, PROFILE_FLUSH_DOORBELL), 2), 0);
	/* a record behind the queue's own index: nearly 2^16, over and over the ring */
	assert_int_equal(flushed(with(PROFILE_FLUSH, PROFILE_FLUSH_DOORBELL), 0), 0xfffe);
}

/* A doorbell for a managed queue of two NOPs. Returns the number of NOPs that it executes. */
static unsigned rung(struct hw_config cfg, enum hw_qp_state *state)
{
	struct rig_one o;
	unsigned done = 0;
	const uint8_t *cqe;

	rig_one_open(&o, cfg, (struct hw_cq_attr){.log_size = 4}, (struct rig_opt){.managed = true});
	wqe_nop(&o.q, 1, SIG);
	wqe_nop(&o.q, 1, SIG);
	rig_one_go(&o);
	*state = hw_qp_state(o.q.qp);
	assert_int_equal(o.q.events, *state == HW_ERR);
	while ((cqe = rig_cq_next(&o.scq)))
		done += rig_cqe_op(cqe) == CQE_OP_REQ;
	rig_one_close(&o);
	return done;
}

/* Rings for another queue of the page: a managed queue whose index has passed half of its record's circle
 * stays. */
static void doorbell_of_another_queue(void **state)
{
	struct hw_qp_progress at;
	struct master t;

	master_open(&t, with(PROFILE_DOORBELL, PROFILE_DOORBELL_MOVES));
	rig_connect(&t.q, &t.q);
	for (unsigned i = 0; i < 0x8010; i += 0x10) {
		for (unsigned k = 0; k < 0x10; k++)
			wqe_nop(&t.q, 1, 0);
		master_enable(&t, i + 0x10);
	}
	hw_qp_progress(t.q.qp, &at);
	assert_int_equal(at.sq_enabled, 0x8010);
	assert_int_equal(at.sq_done, 0x8010);
	assert_int_equal(hw_qp_state(t.q.qp), HW_RTS);
	master_close(&t);
}

static void doorbell_of_a_managed_queue(void **state)
{
	enum hw_qp_state after;

	assert_int_equal(rung(cx5(), &after), 0);
	assert_int_equal(after, HW_ERR);
	assert_int_equal(rung(with(PROFILE_DOORBELL, PROFILE_DOORBELL_IGNORED), &after), 0);
	assert_int_equal(after, HW_RTS);
	assert_int_equal(rung(with(PROFILE_DOORBELL, PROFILE_DOORBELL_MOVES), &after), 2);
	assert_int_equal(after, HW_RTS);
}

/* Four NOPs, of which two are enabled, and then one. Returns how many have run. */
static unsigned enabled_behind(struct hw_config cfg)
{
	struct master t;
	unsigned done;

	master_open(&t, cfg);
	rig_connect(&t.q, &t.q);
	for (unsigned i = 0; i < 4; i++)
		wqe_nop(&t.q, 1, 0);
	master_enable(&t, 2);
	master_enable(&t, 1);
	done = master_done(&t);
	master_close(&t);
	return done;
}

static void enable_behind(void **state)
{
	assert_int_equal(enabled_behind(cx5()), 2);
	assert_true(enabled_behind(with(PROFILE_BEHIND, PROFILE_BEHIND_AROUND)) >= 4);
}

/* Timestamps of a queue in the real-time format: seconds and nanoseconds since 1970 */
static void real_time(void **state)
{
	struct rig_one o;
	time_t before = time(NULL), at;
	uint64_t stamp;

	rig_one_open(&o, cx5(), (struct hw_cq_attr){.log_size = 4}, (struct rig_opt){.real_time = true});
	wqe_nop(&o.q, 1, SIG);
	rig_one_go(&o);
	stamp = wqe_get64(rig_expect(&o.scq, CQE_OP_REQ) + CQE_TIMESTAMP);
	at = (time_t)(stamp >> 32);
	assert_in_range(at, before - 1, time(NULL) + 1);
	assert_in_range(stamp & 0xffffffff, 0, 999999999);
	rig_one_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_masked_atomics),
		cmocka_unit_test(no_opcodes),
		cmocka_unit_test(big_endian_atomics),
		cmocka_unit_test(no_recv_enable),
		cmocka_unit_test(short_wqes),
		cmocka_unit_test(queue_limit),
		cmocka_unit_test(unchecked),
		cmocka_unit_test(fetch_groups),
		cmocka_unit_test(recv_groups),
		cmocka_unit_test(flush_to_doorbell),
		cmocka_unit_test(doorbell_of_a_managed_queue),
		cmocka_unit_test(enable_behind),
		cmocka_unit_test(doorbell_of_another_queue),
		cmocka_unit_test(real_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
