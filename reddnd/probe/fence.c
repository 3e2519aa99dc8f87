/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

enum {
	TRIAL = 4, /* WQEBBs of the working queue: a READ, two SEND_ENs, and a mark; the other queue has a
		      mark */
	TRIALS = BED_WQEBBS / TRIAL,
	RUNS = 8, /* at most, of each kind */
	MAX_READ = 16384,
};

/* Sizes of the READs, small and large: either could be the one that is late */
static const uint32_t sizes[] = {64, 256, 4096, MAX_READ};

struct memory {
	uint8_t source[MAX_READ], sink[MAX_READ];
	uint8_t mark, hit[TRIALS];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the testbed is too small");

static void mark_wqe(struct bed *bed, struct memory *m, unsigned q, unsigned trial)
{
	uint8_t *w = bed_wqe(bed, q, WQE_OP_NOP, 3, trial == TRIALS - 1 ? WQE_SIGNALLED : 0);

	bed_remote(bed, w, &m->hit[trial]);
	bed_sge(bed, w + WQE_RDMA_SGE, &m->mark, 1);
}

/* The READ turns one of the marks into a WRITE; the first SEND_EN after it enables that one */
static void write_trial(struct bed *bed, struct memory *m, unsigned trial, uint8_t flags)
{
	uint32_t size = sizes[trial / 2 % COUNT(sizes)];
	unsigned patched = trial % 2 ? BED_TARGET : BED_WORK, first = bed->posted[BED_WORK];
	unsigned mark[BED_QUEUES] = {first + TRIAL - 1, bed->posted[BED_TARGET]};
	uint8_t *w = bed_wqe(bed, BED_WORK, WQE_OP_READ, 4, 0);

	bed_remote(bed, w, m->source + MAX_READ - size);
	bed_sge(bed, w + WQE_RDMA_SGE, m->sink, size - 1);
	bed_sge(bed, w + WQE_RDMA_SGE + WQE_DS, bed_at(bed, patched, mark[patched]) + WQE_OPCODE, 1);
	for (unsigned i = 0; i < BED_QUEUES; i++) {
		unsigned q = i ? BED_QUEUES - 1 - patched : patched, through = mark[q] + 1;

		if (q == BED_WORK && trial < TRIALS - 1)
			through += TRIAL - 1; /* the next trial without its mark */
		bed_sync(bed, WQE_OP_SEND_EN, flags, through, bed->qp[q].qpn);
	}
	mark_wqe(bed, m, BED_WORK, trial);
	mark_wqe(bed, m, BED_TARGET, trial);
}

/* Run number @n of the testbed. Returns the number of WQEs that were patched before the NIC fetched them, or
 * a negative errno */
static int run(struct bed *bed, unsigned n, uint8_t flags)
{
	struct memory *m = (struct memory *)bed->memory;
	uint16_t first = (uint16_t)(bed->posted[BED_WORK] + TRIAL - 1);
	int r, hits = 0;
	char why[100];

	memset(m, 0, sizeof(*m));
	m->mark = 1;
	m->source[MAX_READ - 1] = WQE_OP_WRITE;
	for (unsigned i = 0; i < TRIALS; i++)
		write_trial(bed, m, i, flags);
	r = master_qp_enable(bed->master, bed->qp[BED_WORK].qpn, first);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&bed->cq[BED_WORK], n) || !bed_has_cqe(&bed->cq[BED_TARGET], n) ||
		bed_errors(bed, why, sizeof(why)) < 0)
		return -EIO;
	for (unsigned i = 0; i < TRIALS; i++)
		hits += __atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
	return hits;
}

/* Repeats the run until a WQE is fetched too early. 1 if that never happened */
static int never_early(struct bed *bed, unsigned *n, uint8_t flags)
{
	for (unsigned i = 0; i < RUNS; i++) {
		int hits = run(bed, (*n)++, flags);

		if (hits < TRIALS)
			return hits < 0 ? hits : 0;
	}
	return 1;
}

int selftest_fenced_enables(struct master_qp *master)
{
	struct bed bed;
	unsigned n = 0;
	int r = bed_init(&bed, master);

	if (r == 0)
		r = never_early(&bed, &n, 0);
	if (r >= 0)
		r = r ? 0 /* no difference to be seen */ : never_early(&bed, &n, WQE_FENCE);
	bed_deinit(&bed);
	return r;
}
