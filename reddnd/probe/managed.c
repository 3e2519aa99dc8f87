/* SPDX-License-Identifier: BSD-2-Clause */
/* Managed queues: how far the NIC fetches them, and how far it flushes them. */
#include "reddnd/probe/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { STEP = 4 /* WQEBBs of the working queue */, STEPS = BED_WQEBBS / STEP };
enum { RUNS = 320 /* 10240 steps */, MAX_GROUP = 16 };
enum { SETTLE_MS = 10 };

struct memory {
	uint8_t opcode, mark;
	uint8_t hit[STEPS];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the testbed is too small");

/* ---- fetching --------------------------------------------------------------------------- */

/* Step @i of all: waits until the target's WQE before is over, makes the next one a WRITE, and enables it */
static void write_step(struct bed *bed, struct memory *m, unsigned i)
{
	unsigned at = bed->posted[BED_TARGET];
	uint8_t *w = bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 3, WQE_SIGNALLED);

	bed_remote(bed, w, &m->hit[i % STEPS]);
	bed_sge(bed, w + WQE_RDMA_SGE, &m->mark, 1);
	if (i == 0)
		bed_wqe(bed, BED_WORK, WQE_OP_NOP, 1, 0);
	else
		bed_sync(bed, WQE_OP_WAIT, 0, i - 1, bed->cq[BED_TARGET].cqn);
	w = bed_wqe(bed, BED_WORK, WQE_OP_READ, 3, WQE_SIGNALLED);
	bed_remote(bed, w, &m->opcode);
	bed_sge(bed, w + WQE_RDMA_SGE, bed_at(bed, BED_TARGET, at) + WQE_OPCODE, 1);
	bed_sync(bed, WQE_OP_WAIT, 0, i, bed->cq[BED_WORK].cqn);
	bed_sync(bed, WQE_OP_SEND_EN, 0, at + 1, bed->qp[BED_TARGET].qpn);
}

/* As bed_has_cqe(), but a run takes less than its millisecond */
static bool is_over(const struct rnic_cq *cq, unsigned n)
{
	const struct timespec pause = {.tv_nsec = 20000};
	struct rnic_cqe cqe;

	for (unsigned tries = 0; tries < 50 && !rnic_cq_peek(cq, n, &cqe); tries++)
		nanosleep(&pause, NULL);
	return bed_has_cqe(cq, n);
}

/* Run number @n. Adds to @stale, by the place of the WQE, those that were executed without the patch */
static int run(struct bed *bed, unsigned n, unsigned stale[MAX_GROUP])
{
	struct memory *m = (struct memory *)bed->memory;
	char why[100];
	int r;

	memset(m->hit, 0, sizeof(m->hit));
	m->opcode = WQE_OP_WRITE;
	m->mark = 1;
	for (unsigned i = 0; i < STEPS; i++)
		write_step(bed, m, n * STEPS + i);
	r = bed_start(bed);
	if (r < 0)
		return r;
	if (!is_over(&bed->cq[BED_TARGET], (n + 1) * STEPS - 1) || bed_errors(bed, why, sizeof(why)) < 0)
		return -EIO;
	for (unsigned i = 0; i < STEPS; i++)
		stale[(n * STEPS + i) % MAX_GROUP] += !__atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
	return 0;
}

/* The smallest group that explains what was stale: never its first WQEBB */
static unsigned group_of(const unsigned stale[MAX_GROUP])
{
	for (unsigned group = 1; group <= MAX_GROUP; group *= 2) {
		bool explains = true;

		for (unsigned i = 0; i < MAX_GROUP; i++)
			explains &= i % group != 0 || !stale[i];
		if (explains)
			return group;
	}
	return 0;
}

int selftest_fetch_group(struct master_qp *master)
{
	unsigned stale[MAX_GROUP] = {0};
	struct bed bed;
	int r = bed_init(&bed, master);

	for (unsigned n = 0; n < RUNS && r == 0; n++)
		r = run(&bed, n, stale);
	bed_deinit(&bed);
	return r < 0 ? r : (int)group_of(stale);
}

/* ---- flushing --------------------------------------------------------------------------- */

/* Two WQEs of the target are executed, a WAIT holds the third, and the fourth is enabled too: two to flush */
static void write_blocked(struct bed *bed)
{
	uint8_t *w;

	for (unsigned i = 0; i < 2; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, WQE_SIGNALLED);
	w = bed_wqe(bed, BED_TARGET, WQE_OP_WAIT, 2, 0);
	wqe_put32(w + WQE_SYNC_INDEX, 0);
	wqe_put32(w + WQE_SYNC_OBJECT, bed->recv_cq.cqn);
	for (unsigned i = 0; i < 4; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, 0);
	bed_sync(bed, WQE_OP_SEND_EN, 0, 4, bed->qp[BED_TARGET].qpn);
}

static int flush(struct bed *bed)
{
	enum { EXECUTED = 2, ENABLED = 4 };
	struct rnic_cqe cqe;
	int r;

	write_blocked(bed);
	r = bed_start(bed);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&bed->cq[BED_TARGET], EXECUTED - 1))
		return -EIO;
	rnic_qp_stop(&bed->qp[BED_TARGET]);
	bed_has_cqe(&bed->cq[BED_TARGET], ENABLED - 1);
	bed_sleep(SETTLE_MS);
	return !rnic_cq_peek(&bed->cq[BED_TARGET], ENABLED, &cqe) &&
	       rnic_cq_peek(&bed->cq[BED_TARGET], 0, &cqe) && !cqe.error;
}

int selftest_flushes_enabled_only(struct master_qp *master)
{
	struct bed bed;
	int r = bed_init(&bed, master);

	if (r == 0)
		r = flush(&bed);
	bed_deinit(&bed);
	return r;
}
