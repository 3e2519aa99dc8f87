/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the NIC fetches a managed queue. Of a send queue: a WQE is enabled and executed, then the next one
 * gets its opcode, by a READ or by a RECV in turn, and is enabled. A NIC that fetched the next one together
 * with the one before executes it as it was. Each WQE is one WQEBB, so every alignment takes its turn. Of a
 * receive queue: a RECV is used, then the next one gets its address.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

#include <errno.h>
#include <string.h>

enum {
	STEP = 5, /* WQEBBs of the working queue, at most */
	STEPS = BED_RECVS,
	RUNS = 160,    /* 10240 steps */
	MAX_GROUP = 16 /* WQEBBs, or RECVs of as many bytes; of 1 KiB */
};

struct memory {
	uint64_t place[STEPS]; /* of hit[], as a RECV has it */
	uint8_t opcode, mark, nowhere;
	uint8_t hit[STEPS];
};

_Static_assert(STEPS *STEP <= (int)BED_WQEBBS && STEPS % 2 == 0, "a run fits into the rings");
_Static_assert(BED_RECV_SGES *WQE_DS == (int)RNIC_WQEBB_BYTES, "a RECV is as long as a WQEBB");

struct count {
	bool recvs;                /* it is a receive queue */
	unsigned stale[MAX_GROUP]; /* by the place of the WQE or RECV */
	unsigned loaded;           /* steps while other queues had work */
};

/* Where the target reports that a step is over */
static const struct rnic_cq *steps_cq(const struct bed *bed, bool recvs)
{
	return recvs ? &bed->recv_cq[BED_TARGET] : &bed->cq[BED_TARGET];
}

/* Puts the @len bytes of @right at @to, and waits until they are there: the READs and the RECVs, half of @i
 * each, count on CQs of their own */
static void write_patch(struct bed *bed, const void *right, uint8_t *to, uint32_t len, unsigned i)
{
	uint8_t *send;

	if (i % 2 == 0) {
		bed_copy(bed, BED_WORK, WQE_OP_READ, WQE_SIGNALLED, right, to, len);
		bed_sync(bed, WQE_OP_WAIT, 0, i / 2, bed->cq[BED_WORK].cqn);
		return;
	}
	send = bed_wqe(bed, BED_WORK, WQE_OP_SEND, 2, 0);
	bed_sge(bed, send + WQE_SEND_SGE, right, len);
	bed_sge(bed, bed_recv(bed, BED_WORK), to, len);
	bed_sync(bed, WQE_OP_WAIT, 0, i / 2, bed->recv_cq[BED_WORK].cqn);
}

/* Makes the target's next WQE, a NOP, a WRITE of the mark */
static void write_wqe(struct bed *bed, struct memory *m, unsigned i)
{
	uint8_t *w = bed_copy(bed, BED_TARGET, WQE_OP_NOP, WQE_SIGNALLED, &m->hit[i % STEPS], &m->mark, 1);

	write_patch(bed, &m->opcode, w + WQE_OPCODE, 1, i);
}

/* Gives the target's next RECV its place, and enables it, for a message with the mark */
static void write_recv(struct bed *bed, struct memory *m, unsigned i)
{
	uint8_t *send = bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, 0), *sge = bed_recv(bed, BED_TARGET);

	bed_sge(bed, send + WQE_SEND_SGE, &m->mark, 1);
	bed_sge(bed, sge, &m->nowhere, 1);
	wqe_put64((uint8_t *)&m->place[i % STEPS], bed_iova(bed, &m->hit[i % STEPS]));
	write_patch(bed, &m->place[i % STEPS], sge + WQE_SGE_ADDR, sizeof(m->place[0]), i);
	bed_sync(bed, WQE_OP_RECV_EN, 0, i + 1, bed->qp[BED_TARGET].qpn);
}

/* Step @i of all: waits until the target's step before is over, or at first until other queues have begun
 * their work; patches what the next one has, and enables it */
static void write_step(struct bed *bed, const struct load *load, struct memory *m, unsigned i, bool recvs)
{
	if (i % STEPS == 0 && load) /* what was before is over */
		bed_sync(bed, WQE_OP_WAIT, 0, load_begin(load), load->cq[0].cqn);
	else if (i == 0)
		bed_wqe(bed, BED_WORK, WQE_OP_NOP, 1, 0);
	else
		bed_sync(bed, WQE_OP_WAIT, 0, i - 1, steps_cq(bed, recvs)->cqn);
	if (recvs)
		write_recv(bed, m, i);
	else
		write_wqe(bed, m, i);
	bed_sync(bed, WQE_OP_SEND_EN, 0, bed->posted[BED_TARGET], bed->qp[BED_TARGET].qpn);
}

/* Run number @n. 1, or as a check returns */
static int run_steps(struct bed *bed, unsigned n, struct count *count, struct probe_result *result)
{
	struct load *load = bed->probe->load;
	struct memory *m = (struct memory *)bed->memory;
	const struct rnic_cq *cq = steps_cq(bed, count->recvs);
	struct rnic_cqe cqe;
	int r;

	memset(m->hit, 0, sizeof(m->hit));
	m->opcode = WQE_OP_WRITE;
	m->mark = 1;
	for (unsigned i = 0; i < STEPS; i++)
		write_step(bed, load, m, n * STEPS + i, count->recvs);
	rnic_qp_post_recvs(&bed->qp[BED_WORK], bed->recvs[BED_WORK]);
	r = bed_start(bed);
	if (load)
		load_feed(load);
	if (r == 0)
		r = bed_expect(bed, cq, (n + 1) * STEPS - 1, "a step did not end", result);
	if (r == 0 && count->recvs && n == 0 && !rnic_cq_peek(cq, 0, &cqe)) /* which is another check */
		return probe_cannot(result, -EOPNOTSUPP, "RECV_EN does not work");
	if (r <= 0)
		return r;
	for (unsigned i = 0; i < STEPS; i++) {
		count->stale[(n * STEPS + i) % MAX_GROUP] += !__atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
		if (load && rnic_cq_peek(cq, n * STEPS + i, &cqe))
			count->loaded += load_covers(load, &cqe);
	}
	return 1;
}

/* The smallest group that explains what was stale: never the first of it */
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

static int run(struct bed *bed, struct probe_result *result)
{
	unsigned runs = probe_trials(bed->probe, RUNS), stale = 0;
	struct count *count = bed->arg;
	int r = 1;

	for (unsigned n = 0; n < runs && r > 0; n++)
		r = run_steps(bed, n, count, result);
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
		return probe_denies(result, "%u %s were executed as they were before, in no regular places",
			stale, count->recvs ? "RECVs" : "WQEs");
	return probe_denies(result, "it fetches %s before they are enabled, in groups of %u bytes",
		count->recvs ? "RECVs" : "WQEs", result->value * RNIC_WQEBB_BYTES);
}

/* The value is the WQEBBs that are fetched together; 0: unknown */
int check_fetch(struct probe *probe, struct probe_result *result)
{
	struct count count = {0};

	return bed_use(probe, NULL, result, run, &count);
}

/* The value is the RECVs that are fetched together, if they have the length of a WQEBB; 0: unknown */
int check_recv_fetch(struct probe *probe, struct probe_result *result)
{
	struct count count = {.recvs = true};

	return bed_use(probe, &(struct bed_attr){.managed_recvs = true}, result, run, &count);
}
