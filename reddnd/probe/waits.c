/* SPDX-License-Identifier: BSD-2-Clause */
/* Many queues that wait for one CQE, and what a failure means to those who wait for it. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- many queues ------------------------------------------------------------------------ */

enum {
	PAGE = 4096,
	WAITERS = 64,
	MANY_WAITERS = 1024,
	WQEBBS = 16,
	RING = WQEBBS * RNIC_WQEBB_BYTES,
	HOLD_MS = 5
};

struct waiters {
	struct rnic_block block; /* CQEs, doorbell records, rings */
	struct rnic_cq cq;
	struct rnic_qp qp[MANY_WAITERS];
	unsigned n;
};

static int init_waiters(struct waiters *w, const struct master_qp *master)
{
	const unsigned log_cqes = 10, cqes = RNIC_CQE_BYTES << 10,
		       records = PAGE + MANY_WAITERS * RNIC_DB_BYTES;
	const struct rnic_cq_attr cq = {.cqes_off = records, .log_size = log_cqes, .overrun_ignore = true};
	int r = rnic_block_init(&w->block, master->block.pd, master->block.arena,
		records + cqes + (uint64_t)w->n * PAGE, 0, 0);

	if (r == 0)
		r = rnic_cq_init(&w->cq, &w->block, &cq);
	for (unsigned i = 0; i < w->n && r == 0; i++) {
		const struct rnic_qp_attr qp = {.wq_off = records + cqes + (uint64_t)i * PAGE,
			.sq_wqebbs = WQEBBS,
			.db_off = PAGE + (uint64_t)i * RNIC_DB_BYTES,
			.send_cq = &w->cq,
			.managed = true};

		r = rnic_qp_init(&w->qp[i], &w->block, &qp);
		if (r == 0)
			r = rnic_qp_connect_self(&w->qp[i], 1);
	}
	return r;
}

/* A WAIT for CQE @number of the master QP, and a NOP behind it */
static int block(struct rnic_qp *qp, struct master_qp *master, uint32_t number)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *w = qp->sq + (size_t)i * RNIC_WQEBB_BYTES;

		memset(w, 0, RNIC_WQEBB_BYTES);
		wqe_put16(w + WQE_INDEX, (uint16_t)i);
		w[WQE_OPCODE] = i ? WQE_OP_NOP : WQE_OP_WAIT;
		wqe_put32(w + WQE_QPN_DS, qp->qpn << 8 | (i ? 1 : 2));
		w[WQE_FLAGS] = i ? WQE_SIGNALLED : 0;
	}
	wqe_put32(qp->sq + WQE_SYNC_INDEX, number & 0xffffff);
	wqe_put32(qp->sq + WQE_SYNC_OBJECT, master->cq.cqn);
	return master_qp_enable(master, qp->qpn, 2);
}

static int run_waiters(struct waiters *w, struct master_qp *master, struct probe_result *result)
{
	/* each of them is enabled by a WQE with a CQE, so the next one is that of the tick */
	uint32_t number = master->cq.consumer + w->n;
	struct rnic_cqe cqe;
	uint64_t begun;
	int r = 0;

	for (unsigned i = 0; i < w->n && r == 0; i++)
		r = block(&w->qp[i], master, number);
	if (r < 0)
		return r;
	bed_sleep(HOLD_MS);
	if (rnic_cq_peek(&w->cq, 0, &cqe))
		return probe_denies(result, "a WAIT ended before its CQE was there");
	begun = clock_ns();
	r = master_qp_tick(master);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&w->cq, w->n - 1))
		return probe_denies(result, "not all of %u WAITs for one CQE have ended", w->n);
	return probe_measured(
		result, "%u queues, all go on within %.2f ms", w->n, (double)(clock_ns() - begun) * 1e-6);
}

int check_waits(struct probe *probe, struct probe_result *result)
{
	struct waiters *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->n = probe->thorough ? MANY_WAITERS : WAITERS;
	r = init_waiters(w, probe->master);
	if (r == 0)
		r = run_waiters(w, probe->master, result);
	for (unsigned i = 0; i < w->n; i++)
		rnic_qp_deinit(&w->qp[i]);
	rnic_cq_deinit(&w->cq);
	rnic_block_deinit(&w->block);
	free(w);
	return r;
}

/* ---- failures --------------------------------------------------------------------------- */

enum { FAILURES = 8 };

struct words {
	uint64_t word, mark, own, other;
};

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

static void wait_wqe(struct bed *bed, unsigned q, const struct rnic_cq *cq)
{
	uint8_t *w = bed_wqe(bed, q, WQE_OP_WAIT, 2, 0);

	wqe_put32(w + WQE_SYNC_INDEX, 0);
	wqe_put32(w + WQE_SYNC_OBJECT, cq->cqn);
}

/* The target waits for its RECV, as the head of a chain does, and so does the other queue; then it fails */
static int flush_recv(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	w->mark = 1;
	bed_recv(bed, BED_TARGET);
	rnic_qp_post_recvs(&bed->qp[BED_TARGET], bed->recvs[BED_TARGET]);
	for (unsigned q = 0; q < BED_QUEUES; q++) {
		wait_wqe(bed, q, &bed->recv_cq[BED_TARGET]);
		bed_copy(bed, q, WQE_OP_WRITE, WQE_SIGNALLED, q == BED_TARGET ? &w->own : &w->other, &w->mark,
			sizeof(w->mark));
		r = bed_enable(bed, q, 2);
		if (r < 0)
			return r;
	}
	rnic_qp_stop(&bed->qp[BED_TARGET]);
	if (!bed_has_cqe(&bed->recv_cq[BED_TARGET], 0) || !rnic_cq_peek(&bed->recv_cq[BED_TARGET], 0, &cqe) ||
		!cqe.error)
		return probe_denies(result, "a RECV of a queue pair that fails is not flushed with a CQE");
	if (!bed_has_cqe(&bed->cq[BED_WORK], 0) || !w->other)
		return probe_denies(result, "a WAIT for a RECV that was flushed does not end");
	bed_sleep(BED_SETTLE_MS / 5);
	if (__atomic_load_n(&w->own, __ATOMIC_ACQUIRE))
		return probe_denies(
			result, "what waits for a RECV in the same queue pair runs when the RECV is flushed");
	return 1;
}

/* A READ without a right to what it reads; a WQE behind it, and a queue that waits for its CQE */
static int fail_read(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	struct rnic_cqe cqe;
	uint8_t *read;
	int r;

	w->mark = 1;
	w->word = UNTOUCHED;
	wait_wqe(bed, BED_TARGET, &bed->cq[BED_WORK]);
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, WQE_SIGNALLED, &w->other, &w->mark, sizeof(w->mark));
	read = bed_copy(bed, BED_WORK, WQE_OP_READ, WQE_SIGNALLED, &w->mark, &w->word, sizeof(w->word));
	wqe_put32(read + WQE_RKEY, bed->block.rkey ^ 1);
	bed_copy(bed, BED_WORK, WQE_OP_WRITE, WQE_FENCE | WQE_SIGNALLED, &w->own, &w->mark, sizeof(w->mark));
	r = bed_enable(bed, BED_TARGET, 2);
	if (r == 0)
		r = bed_start(bed);
	if (r < 0)
		return r;
	/* A device that flushes more than was enabled has written over the first CQEs */
	if (!bed_has_cqe(&bed->cq[BED_WORK], 0) && !rnic_cq_find_error(&bed->cq[BED_WORK], &cqe))
		return probe_denies(result, "a READ with a wrong key has no CQE");
	if (!rnic_cq_find_error(&bed->cq[BED_WORK], &cqe))
		return probe_denies(result, "a READ with a wrong key has no error CQE");
	if (!bed_has_cqe(&bed->cq[BED_TARGET], 0) || !w->other)
		return probe_denies(result, "a WAIT for a READ that failed does not end");
	bed_sleep(BED_SETTLE_MS / 5);
	if (__atomic_load_n(&w->word, __ATOMIC_ACQUIRE) != UNTOUCHED)
		return probe_denies(result, "a READ that failed has written to its destination");
	if (__atomic_load_n(&w->own, __ATOMIC_ACQUIRE))
		return probe_denies(result, "the WQE behind a READ that failed was executed");
	return probe_measured(result, "%s (%#x)", rnic_syndrome_text(cqe.syndrome), cqe.vendor);
}

/* Each failure takes a bed of its own */
static int repeat(const struct probe *probe, struct probe_result *result,
	int (*run)(struct bed *bed, struct probe_result *result))
{
	int r = 1;

	result->tried = probe_trials(probe, FAILURES);
	result->showed = result->tried;
	for (unsigned i = 0; i < result->tried && r > 0; i++)
		r = bed_use(probe, NULL, result, run, NULL);
	return r;
}

int check_flushed_recv(struct probe *probe, struct probe_result *result)
{
	return repeat(probe, result, flush_recv);
}

int check_failing_read(struct probe *probe, struct probe_result *result)
{
	return repeat(probe, result, fail_read);
}
