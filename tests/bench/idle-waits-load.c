/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * idle-waits-load DEVICE STEPS IDLE... - what a queue pays for others that are stopped at a WAIT, as those of
 * sessions without requests are. DEVICE: a name, or "" for the machine's only one, which may be a real one.
 *
 * For each number IDLE, in ascending order, so many send queues stop at a WAIT for a CQE that never comes.
 * Then another queue takes STEPS steps one after another: READ, WAIT for it, WRITE. Prints a JSON object for
 * each number: the time of a step from the doorbell to the CQE, in microseconds.
 */
#include "tests/bench/managed.h"
#include "tests/lib/arg.h"
#include "util/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOG_RING = 10,
	PAGE = 4096,
	SQ_WQEBBS = PAGE / RNIC_WQEBB_BYTES,
	LOG_CQ = 4,
	DBS = PAGE / RNIC_DB_BYTES, /* doorbell records in a page */
	MAX_IDLE = 100000,
	WARM_UP = 100,
	CQES_PER_STEP = 2,
	STEP_TIMEOUT_S = 10,
};

static struct managed active;

/* ---- queues that wait ------------------------------------------------------------------- */

static struct {
	struct rnic_arena *arena;
	struct rnic_block block;
	struct rnic_cq cq; /* that gets no CQE */
	struct rnic_qp *qp;
	unsigned n;
} idle;

static uint64_t pages_of_records(unsigned n)
{
	return (n + 1u + DBS - 1) / DBS; /* one is the CQ's */
}

static void idle_open(unsigned most)
{
	uint64_t size = (pages_of_records(most) + 1 + most) * PAGE;
	struct rnic_cq_attr attr = {
		.cqes_off = pages_of_records(most) * PAGE, .log_size = LOG_CQ, .overrun_ignore = true};

	idle.qp = calloc(most + 1, sizeof(*idle.qp));
	managed_need(idle.qp ? 0 : -ENOMEM, "memory");
	managed_need(rnic_arena_new(&idle.arena, size), "memory");
	managed_need(rnic_block_init(&idle.block, rnic_device_pd(active.device), idle.arena, size, 0, 0),
		"memory of queues");
	managed_need(rnic_cq_init(&idle.cq, &idle.block, &attr), "a CQ");
}

/* Adds queues until there are @n. Each stops at a WAIT for the first CQE of the CQ. */
static void idle_add(unsigned n, unsigned most)
{
	for (; idle.n < n; idle.n++) {
		struct rnic_qp *qp = &idle.qp[idle.n];
		struct rnic_qp_attr attr = {.wq_off = (pages_of_records(most) + 1 + idle.n) * PAGE,
			.sq_wqebbs = SQ_WQEBBS,
			.db_off = (idle.n + 1ull) * RNIC_DB_BYTES,
			.send_cq = &idle.cq};
		uint8_t wqe[RNIC_WQEBB_BYTES] = {[WQE_OPCODE] = WQE_OP_WAIT, [WQE_DSCOUNT] = 2};

		wqe_put32(wqe + WQE_SYNC_OBJECT, idle.cq.cqn);
		managed_need(rnic_qp_init(qp, &idle.block, &attr), "a QP");
		managed_need(rnic_qp_connect_self(qp, 1), "connecting");
		rnic_qp_post(qp, wqe);
	}
}

static void idle_close(void)
{
	while (idle.n > 0)
		rnic_qp_deinit(&idle.qp[--idle.n]);
	rnic_cq_deinit(&idle.cq);
	rnic_block_deinit(&idle.block);
	rnic_arena_free(idle.arena);
	free(idle.qp);
}

/* ---- the queue that works ----------------------------------------------------------------- */

static void put_transfer(uint16_t at, uint8_t opcode, uint64_t off)
{
	uint8_t *w = managed_wqe(&active, &active.master, at, opcode, 3, WQE_SIGNALLED);

	wqe_put64(w + WQE_RADDR, active.block.iova + off);
	wqe_put32(w + WQE_RKEY, active.block.rkey);
	wqe_put32(w + WQE_RDMA_SGE + WQE_SGE_LEN, 16);
	wqe_put32(w + WQE_RDMA_SGE + WQE_SGE_LKEY, active.block.lkey);
	wqe_put64(w + WQE_RDMA_SGE + WQE_SGE_ADDR, active.block.iova);
}

/* Step number @n of all; its time in nanoseconds */
static uint64_t step(uint32_t n)
{
	uint16_t at = active.master.sq_posted;
	uint64_t began, now;
	struct rnic_cqe cqe;
	uint8_t *w;

	put_transfer(at, WQE_OP_READ, 64);
	w = managed_wqe(&active, &active.master, (uint16_t)(at + 1), WQE_OP_WAIT, 2, 0);
	wqe_put32(w + WQE_SYNC_INDEX, n * CQES_PER_STEP & 0xffffff);
	wqe_put32(w + WQE_SYNC_OBJECT, active.master_cq.cqn);
	put_transfer((uint16_t)(at + 2), WQE_OP_WRITE, 128);
	active.master.sq_posted = (uint16_t)(at + 3);
	began = clock_ns();
	managed_ring(&active);
	do {
		now = clock_ns();
		if (now - began > STEP_TIMEOUT_S * 1000000000ull)
			managed_need(-ETIMEDOUT, "a step");
	} while (!rnic_cq_peek(&active.master_cq, n * CQES_PER_STEP + 1, &cqe));
	if (cqe.error)
		managed_need(-EIO, rnic_syndrome_text(cqe.syndrome));
	return now - began;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned steps, most;
	uint64_t *ns;
	uint32_t n = 0;

	if (argc < 4) {
		fprintf(stderr, "usage: idle-waits-load DEVICE STEPS IDLE...\n");
		return 2;
	}
	steps = (unsigned)arg_number(argv[2], 10000000);
	most = (unsigned)arg_number(argv[argc - 1], MAX_IDLE);
	ns = calloc(steps, sizeof(*ns));
	managed_need(steps && ns ? 0 : -ENOMEM, "memory of steps");
	managed_open(&active,
		&(struct managed_attr){.device = argv[1], .log_ring = LOG_RING, .overrun_ignore = true});
	idle_open(most);
	for (int i = 3; i < argc; i++) {
		unsigned want = (unsigned)arg_number(argv[i], most);

		idle_add(want, most);
		for (unsigned k = 0; k < WARM_UP; k++)
			step(n++);
		for (unsigned k = 0; k < steps; k++)
			ns[k] = step(n++);
		qsort(ns, steps, sizeof(*ns), by_value);
		printf("{\"idle\": %u, \"steps\": %u, \"median_us\": %.3f, \"p99_us\": %.3f, \"max_us\": "
		       "%.3f}\n",
			idle.n, steps, (double)ns[steps / 2] / 1e3,
			(double)ns[(uint64_t)steps * 99 / 100] / 1e3, (double)ns[steps - 1] / 1e3);
		fflush(stdout);
	}
	idle_close();
	managed_close(&active);
	free(ns);
	return 0;
}
