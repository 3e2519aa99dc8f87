/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the NIC fetches a managed queue: a WQE is enabled and executed, then the next one gets its opcode,
 * by a READ or by a RECV in turn, and is enabled. A NIC that fetched the next one together with the one
 * before executes it as it was. Each WQE is one WQEBB, so every alignment takes its turn.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

#include <string.h>

enum { STEP = 4 /* WQEBBs of the working queue */, STEPS = BED_WQEBBS / STEP };
enum { RUNS = 80 /* 10240 steps */, MAX_GROUP = 16 /* WQEBBs; of 1 KiB */ };

struct memory {
	uint8_t opcode, mark;
	uint8_t hit[STEPS];
};

_Static_assert(STEPS / 2 <= (int)BED_RECVS && STEPS % 2 == 0, "a run takes no more RECVs than there are");

struct count {
	unsigned stale[MAX_GROUP]; /* by the place of the WQE */
	unsigned loaded;           /* steps while other queues had work */
};

/* Makes the target's WQE @w a WRITE, and waits until it is: the READs and the RECVs, half of @i each, count
 * on CQs of their own */
static void write_patch(struct bed *bed, struct memory *m, unsigned i, uint8_t *w)
{
	uint8_t *send;

	if (i % 2 == 0) {
		bed_copy(bed, BED_WORK, WQE_OP_READ, WQE_SIGNALLED, &m->opcode, w + WQE_OPCODE, 1);
		bed_sync(bed, WQE_OP_WAIT, 0, i / 2, bed->cq[BED_WORK].cqn);
		return;
	}
	send = bed_wqe(bed, BED_WORK, WQE_OP_SEND, 2, 0);
	bed_sge(bed, send + WQE_SEND_SGE, &m->opcode, 1);
	bed_sge(bed, bed_recv(bed, BED_WORK), w + WQE_OPCODE, 1);
	bed_sync(bed, WQE_OP_WAIT, 0, i / 2, bed->recv_cq[BED_WORK].cqn);
}

/* Step @i of all: waits until the target's WQE before is over, or at first until other queues have begun
 * their work; makes the next one a WRITE, and enables it */
static void write_step(struct bed *bed, const struct load *load, struct memory *m, unsigned i)
{
	unsigned at = bed->posted[BED_TARGET];
	uint8_t *w = bed_copy(bed, BED_TARGET, WQE_OP_NOP, WQE_SIGNALLED, &m->hit[i % STEPS], &m->mark, 1);

	if (i % STEPS == 0 && load) /* what was before is over */
		bed_sync(bed, WQE_OP_WAIT, 0, load_begin(load), load->cq[0].cqn);
	else if (i == 0)
		bed_wqe(bed, BED_WORK, WQE_OP_NOP, 1, 0);
	else
		bed_sync(bed, WQE_OP_WAIT, 0, i - 1, bed->cq[BED_TARGET].cqn);
	write_patch(bed, m, i, w);
	bed_sync(bed, WQE_OP_SEND_EN, 0, at + 1, bed->qp[BED_TARGET].qpn);
}

/* Run number @n. 1, or as a check returns */
static int run_steps(struct bed *bed, const struct probe *probe, unsigned n, struct count *count,
	struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	memset(m->hit, 0, sizeof(m->hit));
	m->opcode = WQE_OP_WRITE;
	m->mark = 1;
	for (unsigned i = 0; i < STEPS; i++)
		write_step(bed, probe->load, m, n * STEPS + i);
	rnic_qp_post_recvs(&bed->qp[BED_WORK], bed->recvs[BED_WORK]);
	r = bed_start(bed);
	if (probe->load)
		load_feed(probe->load);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_TARGET], (n + 1) * STEPS - 1, "a step did not end", result);
	if (r <= 0)
		return r;
	for (unsigned i = 0; i < STEPS; i++) {
		count->stale[(n * STEPS + i) % MAX_GROUP] += !__atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
		if (probe->load && rnic_cq_peek(&bed->cq[BED_TARGET], n * STEPS + i, &cqe))
			count->loaded += load_covers(probe->load, &cqe);
	}
	return 1;
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

static int run(struct bed *bed, const struct probe *probe, struct probe_result *result, void *arg)
{
	unsigned runs = probe_trials(probe, RUNS), stale = 0;
	struct count *count = arg;
	int r = 1;

	for (unsigned n = 0; n < runs && r > 0; n++)
		r = run_steps(bed, probe, n, count, result);
	if (r <= 0)
		return r;
	for (unsigned i = 0; i < MAX_GROUP; i++)
		stale += count->stale[i];
	result->value = group_of(count->stale);
	result->tried = (uint64_t)runs * STEPS;
	/* All but the first of a group, however large that may be */
	result->showed = result->tried / MAX_GROUP * (MAX_GROUP - 1);
	probe_measured(result, "%u of %u steps while other queues were at work", count->loaded, runs * STEPS);
	if (!stale)
		return 1;
	if (!result->value)
		return probe_denies(
			result, "%u WQEs were executed as they were before, in no regular places", stale);
	return probe_denies(result, "it fetches WQEs before they are enabled, in groups of %u bytes",
		result->value * RNIC_WQEBB_BYTES);
}

/* The value is the WQEBBs that are fetched together; 0: unknown */
int check_fetch(struct probe *probe, struct probe_result *result)
{
	struct count count = {0};

	return bed_use(probe, NULL, result, run, &count);
}
