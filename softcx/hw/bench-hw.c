/* SPDX-License-Identifier: BSD-2-Clause */
/* How many WQEs the emulated silicon executes per second of CPU time: `meson test --benchmark`. */
#include "softcx/hw/test-rig.h"
#include "util/clock.h"

#include <stdio.h>
#include <time.h>

enum { RING = 32768, ROUNDS = 40 };

struct bench {
	struct rig rig;
	struct rig_cq mcq, ccq;
	struct rig_qp m, c;
	uint64_t *word;
	uint32_t mcqes, ccqes;
};

static void open_bench(struct bench *b, bool lenient)
{
	struct hw_config cfg = {.seed = 1, .lenient = lenient};
	struct hw_cq_attr attr = {.log_size = 10, .oi = true};

	*b = (struct bench){0};
	rig_open(&b->rig, &cfg);
	rig_cq_new_attr(&b->rig, &b->mcq, attr);
	rig_cq_new_attr(&b->rig, &b->ccq, attr);
	rig_qp_new_with(&b->rig, &b->m, &b->mcq, &b->mcq, (struct rig_opt){.wqebbs = RING});
	rig_qp_new_with(&b->rig, &b->c, &b->ccq, &b->ccq, (struct rig_opt){.wqebbs = RING, .managed = true});
	rig_connect(&b->m, &b->m);
	rig_connect(&b->c, &b->c);
	b->word = rig_alloc(&b->rig, 4096);
}

static void close_bench(struct bench *b)
{
	rig_destroy(&b->m);
	rig_destroy(&b->c);
	assert_int_equal(hw_cq_destroy(b->rig.dev, b->mcq.cq), 0);
	assert_int_equal(hw_cq_destroy(b->rig.dev, b->ccq.cq), 0);
	rig_close(&b->rig);
}

/* Each fills the rings once; returns the number of WQEs. */
static unsigned small_writes(struct bench *b)
{
	for (unsigned i = 0; i < RING - 1; i++)
		wqe_rdma(&b->m, WQE_OP_WRITE, b->word, 8, b->word + 8 + i % 64, 0, 0);
	return RING - 1;
}

static unsigned signalled_writes(struct bench *b)
{
	for (unsigned i = 0; i < RING - 1; i++)
		wqe_rdma(&b->m, WQE_OP_WRITE, b->word, 8, b->word + 8 + i % 64, SIG, 0);
	return RING - 1;
}

static unsigned reads(struct bench *b)
{
	for (unsigned i = 0; i < RING - 1; i++)
		wqe_rdma(&b->m, WQE_OP_READ, b->word, 8, b->word + 8 + i % 64, SIG, 0);
	return RING - 1;
}

static unsigned writes_1k(struct bench *b)
{
	for (unsigned i = 0; i < RING - 1; i++)
		wqe_rdma(&b->m, WQE_OP_WRITE, b->word, 1024, b->word + 128, SIG, 0);
	return RING - 1;
}

/* A hash get as the paper counts it: wait, enable, read, fenced CAS, wait, enable; then the reply. */
static unsigned chain(struct bench *b)
{
	unsigned n = 0, k = RING / 8;

	for (unsigned i = 0; i < k; i++, n += 8) {
		wqe_nop(&b->m, 1, SIG);
		wqe_wait(&b->m, hw_cqn(b->mcq.cq), b->mcqes++, 0);
		wqe_rdma(&b->m, WQE_OP_READ, b->word, 16, b->word + 8, 0, 0);
		wqe_atomic(&b->m, WQE_OP_CAS, b->word + 4, b->word + 5, 0, 1, SIG | FENCE);
		wqe_wait(&b->m, hw_cqn(b->mcq.cq), b->mcqes++, 0);
		wqe_enable(&b->m, WQE_OP_SEND_EN, hw_qpn(b->c.qp), b->c.pi + 1u, 0);
		wqe_rdma(&b->c, WQE_OP_WRITE, b->word, 64, b->word + 64, SIG, 0);
		wqe_wait(&b->m, hw_cqn(b->ccq.cq), b->ccqes++, 0);
	}
	return n;
}

static void measure(const char *name, unsigned (*fill)(struct bench *), bool lenient)
{
	struct bench b;
	uint64_t wqes = 0, ns = 0;

	open_bench(&b, lenient);
	for (unsigned i = 0; i < ROUNDS; i++) {
		wqes += fill(&b);
		rig_ring(&b.m);
		ns -= clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
		rig_run(&b.rig);
		ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	}
	assert_int_equal(hw_qp_state(b.m.qp), HW_RTS);
	assert_int_equal(hw_qp_state(b.c.qp), HW_RTS);
	assert_int_equal(hw_cq_producer(b.ccq.cq), b.ccqes); /* the last wait was reached */
	printf("%-20s %-8s %6.2f M WQE/s\n", name, lenient ? "lenient" : "strict",
		(double)wqes / (double)ns * 1e3);
	close_bench(&b);
}

int main(void)
{
	for (int lenient = 0; lenient < 2; lenient++) {
		measure("write 8 B", small_writes, lenient);
		measure("write 8 B, CQE", signalled_writes, lenient);
		measure("read 8 B, CQE", reads, lenient);
		measure("write 1 KiB, CQE", writes_1k, lenient);
		measure("chain", chain, lenient);
	}
	return 0;
}
