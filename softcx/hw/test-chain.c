/* SPDX-License-Identifier: BSD-2-Clause */
/* Managed queues, and what a program may rely on: enables, waits, fences, fetches. */
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <string.h>

enum { SEEDS = 200 };

/*
 * A master queue that software rings and a managed queue, each connected to itself, each with its own CQ.
 */
struct duo {
	struct rig rig;
	struct rig_cq mcq, ccq;
	struct rig_qp m, c; /* master, code */
	uint64_t *word;     /* scratch */
};

static void open_duo_cfg(struct duo *d, struct hw_config cfg)
{
	struct rig_opt managed = {.managed = true}, plain = {0};

	rig_open(&d->rig, &cfg);
	rig_cq_new(&d->rig, &d->mcq, 6);
	rig_cq_new(&d->rig, &d->ccq, 6);
	rig_qp_new_with(&d->rig, &d->m, &d->mcq, &d->mcq, plain);
	rig_qp_new_with(&d->rig, &d->c, &d->ccq, &d->ccq, managed);
	rig_connect(&d->m, &d->m);
	rig_connect(&d->c, &d->c);
	d->word = rig_alloc(&d->rig, 256);
}

static void open_duo(struct duo *d, uint64_t seed, bool lenient)
{
	open_duo_cfg(d, (struct hw_config){.seed = seed, .lenient = lenient});
}

static void close_duo(struct duo *d)
{
	rig_destroy(&d->m);
	rig_destroy(&d->c);
	assert_int_equal(hw_cq_destroy(d->rig.dev, d->mcq.cq), 0);
	assert_int_equal(hw_cq_destroy(d->rig.dev, d->ccq.cq), 0);
	rig_close(&d->rig);
}

static uint32_t mcqn(struct duo *d)
{
	return hw_cqn(d->mcq.cq);
}

static uint32_t cqpn(struct duo *d)
{
	return hw_qpn(d->c.qp);
}

static void enable_limits(void **state)
{
	struct duo d;

	open_duo(&d, 5, false);
	for (int i = 0; i < 4; i++)
		wqe_nop(&d.c, i == 1 ? 8 : 4, SIG);         /* the second takes two WQEBBs */
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 3, SIG); /* exclusive, in WQEBBs */
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_expect(&d.mcq, CQE_OP_REQ)[56], WQE_OP_SEND_EN);
	assert_int_equal(rig_cq_count(&d.ccq), 2);

	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 2, 0); /* behind: no effect */
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 0);
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 3, 0); /* the same: no effect */
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 0);

	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 0xabcd0005, 0); /* 16 bits count */
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 2);
	assert_int_equal(rig_cq_count(&d.mcq), 0);
	close_duo(&d);
}

static void wait_limits(void **state)
{
	struct duo d;

	open_duo(&d, 6, false);
	wqe_wait(&d.c, mcqn(&d), 0xffffff, SIG);   /* CQE -1 has been there */
	wqe_wait(&d.c, mcqn(&d), 1, SIG);          /* the second CQE */
	wqe_wait(&d.c, mcqn(&d), 0xff000000, SIG); /* 24 bits count: passed already */
	wqe_wait(&d.c, mcqn(&d), 2, SIG);
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 4, 0);
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 1);
	wqe_nop(&d.m, 1, SIG);
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 0);
	assert_int_equal(hw_cq_producer(d.mcq.cq), 1);
	wqe_nop(&d.m, 1, 0); /* writes no CQE: counts for nothing */
	wqe_nop(&d.m, 1, SIG);
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 2);
	wqe_nop(&d.m, 1, SIG);
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cq_count(&d.ccq), 1);
	close_duo(&d);
}

/* One lap of a chain that enables the rest of itself and the head of the next lap. */
static void write_lap(struct duo *d, unsigned i)
{
	wqe_wait(&d->c, mcqn(d), i, 0);
	wqe_enable(&d->c, WQE_OP_SEND_EN, cqpn(d), 4 * i + 6, 0);
	wqe_atomic(&d->c, WQE_OP_FETCH_ADD, d->word + 1, d->word, 1, 0, 0);
	wqe_rdma(&d->c, WQE_OP_WRITE, d->word + 1, 8, d->word + 2, SIG | FENCE, 0);
}

/* Far beyond the wrap of the 16-bit index. */
static void laps(void **state)
{
	struct duo d;

	open_duo(&d, 9, false);
	write_lap(&d, 0);
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 2, 0);
	for (unsigned i = 0; i < 40000; i++) {
		write_lap(&d, i + 1);
		wqe_nop(&d.m, 1, SIG);
		rig_ring(&d.m);
		rig_run(&d.rig);
		rig_expect(&d.mcq, CQE_OP_REQ);
		rig_expect(&d.ccq, CQE_OP_REQ);
		assert_int_equal(d.word[0], i + 1);
		assert_int_equal(d.word[2], i);
	}
	close_duo(&d);
}

static void recv_enable(void **state)
{
	struct hw_config cfg = {.seed = 2};
	struct rig_opt managed = {.managed_recv = true};
	struct rig rig;
	struct rig_cq cq;
	struct rig_qp a, b;
	uint64_t *w;

	rig_open(&rig, &cfg);
	rig_cq_new(&rig, &cq, 4);
	rig_qp_new(&rig, &a, &cq, &cq);
	rig_qp_new_with(&rig, &b, &cq, &cq, managed);
	rig_connect(&a, &b);
	w = rig_alloc(&rig, 64);
	w[0] = 42;
	rig_recv(&b, 1, w + 1, 8);
	wqe_send(&a, WQE_OP_SEND, w, 8, 0, 0);
	rig_ring(&a);
	rig_run(&rig);
	assert_int_equal(w[1], 0); /* RNR, whatever is in the doorbell record */
	assert_true(hw_next_timer(rig.dev) != UINT64_MAX);
	wqe_enable(&b, WQE_OP_RECV_EN, hw_qpn(b.qp), 1, SIG);
	rig_ring(&b);
	while (hw_next_timer(rig.dev) != UINT64_MAX)
		rig_run(&rig);
	rig_run(&rig);
	assert_int_equal(w[1], 42);
	rig_expect(&cq, CQE_OP_REQ);
	rig_expect(&cq, CQE_OP_RESP_SEND);
	rig_destroy(&a);
	rig_destroy(&b);
	assert_int_equal(hw_cq_destroy(rig.dev, cq.cq), 0);
	rig_close(&rig);
}

/* ---- programs, right and wrong ---------------------------------------------------------- */

/*
 * The code queue holds one NOP that becomes a WRITE of word[0] to word[1] when its opcode byte is patched.
 * Each program patches it in its own way. Returns how many of SEEDS schedules saw the patch.
 */
typedef void (*program)(struct duo *d, uint8_t *opcode, uint8_t *with);

static unsigned survivors(program fn, bool lenient)
{
	unsigned good = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct duo d;
		uint8_t *target, *with;

		open_duo(&d, seed, lenient);
		with = rig_alloc(&d.rig, 8);
		*with = WQE_OP_WRITE;
		d.word[0] = 4711;
		target = wqe_rdma(&d.c, WQE_OP_NOP, d.word, 8, d.word + 1, SIG, 0);
		fn(&d, target + 3, with);
		rig_ring(&d.m);
		rig_run(&d.rig);
		assert_int_equal(hw_qp_state(d.m.qp), HW_RTS);
		assert_int_equal(hw_qp_state(d.c.qp), HW_RTS);
		assert_int_equal(d.ccq.ring[56], d.word[1] == 4711 ? WQE_OP_WRITE : WQE_OP_NOP);
		good += d.word[1] == 4711;
		close_duo(&d);
	}
	return good;
}

static void write_then_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_WRITE, with, 1, opcode, 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

/* A CQE that nobody waits for orders nothing. */
static void signalled_write_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_WRITE, with, 1, opcode, SIG, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

static void signalled_read_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_READ, opcode, 1, with, SIG, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

/* A fence waits for READs and atomics, not for WRITEs. */
static void write_fenced_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_WRITE, with, 1, opcode, 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, FENCE);
}

static void write_wait_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_WRITE, with, 1, opcode, SIG, 0);
	wqe_wait(&d->m, mcqn(d), 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

static void enable_then_write(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
	wqe_rdma(&d->m, WQE_OP_WRITE, with, 1, opcode, SIG, 0);
}

static void read_then_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_READ, opcode, 1, with, 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

static void read_fence_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_READ, opcode, 1, with, 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, FENCE);
}

static void read_wait_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_READ, opcode, 1, with, SIG, 0);
	wqe_wait(&d->m, mcqn(d), 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

/* The old value of an atomic is as late as the data of a READ; a CQE of a later WQE is enough. */
static void read_nop_wait_enable(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	wqe_rdma(&d->m, WQE_OP_READ, opcode, 1, with, 0, 0);
	wqe_nop(&d->m, 1, SIG);
	wqe_wait(&d->m, mcqn(d), 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

/* Copies through a word: a READ into it, a WRITE out of it. */
static void through_word(struct duo *d, uint8_t *opcode, uint8_t *with, uint8_t fence)
{
	wqe_rdma(&d->m, WQE_OP_READ, d->word + 8, 1, with, 0, 0);
	wqe_rdma(&d->m, WQE_OP_WRITE, d->word + 8, 1, opcode, SIG | fence, 0);
	wqe_wait(&d->m, mcqn(d), 0, 0);
	wqe_enable(&d->m, WQE_OP_SEND_EN, cqpn(d), 1, 0);
}

static void unfenced_copy(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	through_word(d, opcode, with, 0);
}

static void fenced_copy(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	through_word(d, opcode, with, FENCE);
}

static void initiator_small_fence_copy(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	through_word(d, opcode, with, WQE_FM_SMALL << WQE_FM_SHIFT);
}

static void plain_fence_copy(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	through_word(d, opcode, with, WQE_FM_FENCE << WQE_FM_SHIFT);
}

static void strong_copy(struct duo *d, uint8_t *opcode, uint8_t *with)
{
	through_word(d, opcode, with, WQE_FM_STRONG << WQE_FM_SHIFT);
}

static void programs(void **state)
{
	static const struct {
		const char *name;
		program fn;
		bool right;
	} p[] = {
		{"write, enable", write_then_enable, false},
		{"signalled write, enable", signalled_write_enable, false},
		{"signalled read, enable", signalled_read_enable, false},
		{"write, fenced enable", write_fenced_enable, false},
		{"write, wait, enable", write_wait_enable, true},
		{"enable, write", enable_then_write, false},
		{"read, enable", read_then_enable, false},
		{"read, fenced enable", read_fence_enable, true},
		{"read, wait, enable", read_wait_enable, true},
		{"read, nop, wait, enable", read_nop_wait_enable, true},
		{"read, write", unfenced_copy, false},
		{"read, fenced write", fenced_copy, true},
		{"read, small-fenced write", initiator_small_fence_copy, false},
		{"read, write with the other fence", plain_fence_copy, true},
		{"read, strongly ordered write", strong_copy, true},
	};

	for (size_t i = 0; i < COUNT(p); i++) {
		unsigned n = survivors(p[i].fn, false);

		print_message("%s: %u of %u\n", p[i].name, n, SEEDS);
		if (p[i].right)
			assert_int_equal(n, SEEDS);
		else
			assert_in_range(n, 0, SEEDS * 9 / 10);
		if (p[i].fn != enable_then_write)
			assert_int_equal(survivors(p[i].fn, true), SEEDS);
	}
}

/* A queue that patches a WQE of its own: seen only if that WQE is enabled afterwards. */
static void own_queue(void **state)
{
	unsigned wrong = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++)
		for (int right = 0; right < 2; right++) {
			struct duo d;
			uint8_t *target, *with;

			open_duo(&d, seed, false);
			with = rig_alloc(&d.rig, 8);
			*with = WQE_OP_WRITE;
			d.word[0] = 4711;
			target = d.c.sq + 3 * 64;
			wqe_rdma(&d.c, WQE_OP_WRITE, with, 1, target + 3, SIG, 0);
			wqe_wait(&d.c, hw_cqn(d.ccq.cq), 0, 0);
			wqe_enable(&d.c, WQE_OP_SEND_EN, cqpn(&d), 4, 0);
			wqe_rdma(&d.c, WQE_OP_NOP, d.word, 8, d.word + 1, SIG, 0);
			wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), right ? 3 : 4, 0);
			rig_ring(&d.m);
			rig_run(&d.rig);
			assert_int_equal(rig_cq_count(&d.ccq), 2);
			if (right)
				assert_int_equal(d.word[1], 4711);
			else
				wrong += d.word[1] != 4711;
			close_duo(&d);
		}
	assert_in_range(wrong, SEEDS / 2, SEEDS);
}

/* ---- checks ----------------------------------------------------------------------------- */

static void wqe_checks(void **state)
{
	struct duo d;

	for (int bad = 0; bad < 7; bad++) {
		uint8_t *w;

		open_duo(&d, (uint64_t)bad, false);
		wqe_nop(&d.m, 1, 0);
		w = wqe_nop(&d.m, 1, SIG);
		switch (bad) {
		case 0:
			w[2] ^= 1; /* index */
			break;
		case 1:
			w[6] ^= 1; /* QPN */
			break;
		case 2:
			w[7] = 0; /* DS */
			break;
		case 3:
			w[7] = 9; /* beyond what the doorbell enabled */
			break;
		case 4:
			w[3] = 0x3e; /* no such opcode */
			break;
		case 5:
			w[3] = WQE_OP_WRITE; /* no address segment */
			break;
		case 6:
			w[3] = WQE_OP_WAIT; /* no segment */
			break;
		}
		rig_ring(&d.m);
		rig_run(&d.rig);
		assert_int_equal(rig_cqe_idx(rig_expect_error(&d.mcq, CQE_SYND_LOCAL_QP_OP)), 1);
		assert_null(rig_cq_next(&d.mcq));
		assert_int_equal(hw_qp_state(d.m.qp), HW_ERR);
		close_duo(&d);
	}
	/* the checks that a machine may have switched off */
	for (int bad = 0; bad < 2; bad++) {
		uint8_t *w;

		open_duo_cfg(&d, (struct hw_config){.no_index_check = bad == 0, .no_qpn_check = bad == 1});
		w = wqe_nop(&d.m, 1, SIG);
		w[bad ? 6 : 2] ^= 1;
		rig_ring(&d.m);
		rig_run(&d.rig);
		rig_expect(&d.mcq, CQE_OP_REQ);
		close_duo(&d);
	}
}

static void refused(struct duo *d, struct rig_qp *q, bool strict_only)
{
	rig_ring(q);
	rig_run(&d->rig);
	if (strict_only)
		rig_expect(&d->mcq, CQE_OP_REQ);
	else
		rig_expect_error(&d->mcq, CQE_SYND_LOCAL_QP_OP);
}

static void sync_checks(void **state)
{
	for (int lenient = 0; lenient < 2; lenient++)
		for (int bad = 0; bad < 5; bad++) {
			struct rig_opt o = {.no_master = true};
			struct rig_qp x;
			struct duo d;

			open_duo(&d, 1, lenient);
			rig_qp_new_with(&d.rig, &x, &d.mcq, &d.mcq, o);
			rig_connect(&x, &x);
			switch (bad) {
			case 0: /* no such CQ */
				wqe_wait(&d.m, hw_qpn(d.m.qp), 0, SIG);
				refused(&d, &d.m, false);
				break;
			case 1: /* no such QP */
				wqe_enable(&d.m, WQE_OP_SEND_EN, mcqn(&d), 1, SIG);
				refused(&d, &d.m, false);
				break;
			case 2: /* not managed */
				wqe_enable(&d.m, WQE_OP_SEND_EN, hw_qpn(d.m.qp), 1, SIG);
				refused(&d, &d.m, lenient);
				break;
			case 3: /* not a master */
				wqe_wait(&x, mcqn(&d), 0xffffff, SIG);
				refused(&d, &x, lenient);
				break;
			case 4: /* a CQ that goes away under a WAIT */
				wqe_wait(&d.m, hw_cqn(d.ccq.cq), 0, SIG);
				rig_ring(&d.m);
				rig_run(&d.rig);
				assert_null(rig_cq_next(&d.mcq));
				rig_destroy(&d.c);
				assert_int_equal(hw_cq_destroy(d.rig.dev, d.ccq.cq), 0);
				refused(&d, &d.m, false);
				rig_cq_new(&d.rig, &d.ccq, 4);
				rig_qp_new(&d.rig, &d.c, &d.ccq, &d.ccq);
				break;
			}
			rig_destroy(&x);
			close_duo(&d);
		}
}

/* A ring that runs on into its second lap with the first lap's indices. */
static void stale_lap(void **state)
{
	struct duo d;

	open_duo(&d, 1, false);
	for (int i = 0; i < 64; i++)
		wqe_nop(&d.c, 4, 0);
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 64, 0);
	wqe_enable(&d.m, WQE_OP_SEND_EN, cqpn(&d), 65, 0);
	rig_ring(&d.m);
	rig_run(&d.rig);
	assert_int_equal(rig_cqe_idx(rig_expect_error(&d.ccq, CQE_SYND_LOCAL_QP_OP)), 64);
	close_duo(&d);
}

static void same_seed_same_run(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint64_t first = 0;

		for (int run = 0; run < 2; run++) {
			struct duo d;
			uint64_t got;

			open_duo(&d, seed, false);
			d.word[0] = 1;
			for (int i = 0; i < 8; i++) {
				wqe_rdma(&d.m, WQE_OP_READ, d.word + 1 + i, 8, d.word + i, 0, 0);
				wqe_rdma(&d.m, WQE_OP_WRITE, d.word + 1 + i, 8, d.word + 10 + i, 0, 0);
			}
			rig_ring(&d.m);
			rig_run(&d.rig);
			got = 0;
			for (int i = 0; i < 20; i++)
				got = got * 2 + d.word[i];
			if (run)
				assert_int_equal(got, first);
			first = got;
			close_duo(&d);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enable_limits),
		cmocka_unit_test(wait_limits),
		cmocka_unit_test(laps),
		cmocka_unit_test(recv_enable),
		cmocka_unit_test(programs),
		cmocka_unit_test(own_queue),
		cmocka_unit_test(wqe_checks),
		cmocka_unit_test(sync_checks),
		cmocka_unit_test(stale_lap),
		cmocka_unit_test(same_seed_same_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
