/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What makes the data of a READ be in memory before the next WQE uses them: a WAIT for its CQE, or a fence.
 * The same without either shows how often they are late at all.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "util/array.h"

#include <string.h>

enum barrier { NOTHING, FENCE, AWAIT };

enum {
	CONTROL = 1024, /* trials */
	TRIALS = 10240,
	MAX_READ = 16384,
	MAX_IN_RUN = BED_WQEBBS / 2,
};

/* Sizes of the READs, small and large: either could be the one that is late */
static const uint32_t sizes[] = {64, 256, 4096, MAX_READ};

struct memory {
	uint8_t source[MAX_READ], sink[MAX_READ];
	uint8_t mark, patch[MAX_IN_RUN], hit[MAX_IN_RUN];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the bed is too small");
_Static_assert(CONTROL % MAX_IN_RUN == 0 && MAX_IN_RUN % (BED_WQEBBS / (2 * BED_GROUP)) == 0, "whole runs");

struct order {
	struct bed *bed;
	struct probe_result *result;
	unsigned in_run;           /* trials */
	unsigned cqes[BED_QUEUES]; /* expected so far */
	uint8_t last;              /* byte of the source, which the READs bring */
	/* Writes a trial; the last of a run has a CQE in each queue that it uses */
	void (*write)(struct order *o, unsigned trial, enum barrier barrier);
};

/* READs @trial's bytes, the last of which goes to @to */
static void read_wqe(struct order *o, unsigned trial, uint8_t *to, bool signalled)
{
	struct memory *m = (struct memory *)o->bed->memory;
	uint32_t size = sizes[trial / 2 % COUNT(sizes)];
	uint8_t *w = bed_wqe(o->bed, BED_WORK, WQE_OP_READ, 4, signalled ? WQE_SIGNALLED : 0);

	o->cqes[BED_WORK] += signalled;
	bed_remote(o->bed, w, m->source + MAX_READ - size);
	bed_sge(o->bed, w + WQE_RDMA_SGE, m->sink, size - 1);
	bed_sge(o->bed, w + WQE_RDMA_SGE + WQE_DS, to, 1);
}

static uint8_t completion(struct order *o, unsigned q, unsigned trial)
{
	if (trial < o->in_run - 1)
		return 0;
	o->cqes[q]++;
	return WQE_SIGNALLED;
}

/* ---- what is enabled -------------------------------------------------------------------- */

static void mark_wqe(struct order *o, unsigned q, unsigned trial)
{
	struct memory *m = (struct memory *)o->bed->memory;

	bed_copy(o->bed, q, WQE_OP_NOP, 0, &m->hit[trial], &m->mark, 1);
	bed_pad(o->bed, q, completion(o, q, trial));
}

/* The READ turns one of the marks into a WRITE; the first SEND_EN after it enables that one. Each mark has a
 * group of WQEBBs of its own, as has what is before it in the working queue */
static void write_enables(struct order *o, unsigned trial, enum barrier barrier)
{
	struct bed *bed = o->bed;
	unsigned patched = trial % 2 ? BED_TARGET : BED_WORK;
	unsigned mark[BED_QUEUES] = {bed->posted[BED_WORK] + BED_GROUP, bed->posted[BED_TARGET]};

	read_wqe(o, trial, bed_at(bed, patched, mark[patched]) + WQE_OPCODE, barrier == AWAIT);
	if (barrier == AWAIT)
		bed_sync(bed, WQE_OP_WAIT, 0, o->cqes[BED_WORK] - 1, bed->cq[BED_WORK].cqn);
	else
		bed_wqe(bed, BED_WORK, WQE_OP_NOP, 1, 0);
	for (unsigned i = 0; i < BED_QUEUES; i++) {
		unsigned q = i ? BED_QUEUES - 1 - patched : patched, through = mark[q] + BED_GROUP;

		if (q == BED_WORK && trial < o->in_run - 1)
			through += BED_GROUP; /* the next trial without its mark */
		bed_sync(bed, WQE_OP_SEND_EN, barrier == FENCE ? WQE_FENCE : 0, through, bed->qp[q].qpn);
	}
	bed_pad(bed, BED_WORK, false);
	mark_wqe(o, BED_WORK, trial);
	mark_wqe(o, BED_TARGET, trial);
}

/* ---- what is sent ----------------------------------------------------------------------- */

/* The READ brings a byte, and the WRITE sends it on */
static void write_copies(struct order *o, unsigned trial, enum barrier barrier)
{
	struct memory *m = (struct memory *)o->bed->memory;

	read_wqe(o, trial, &m->patch[trial], false);
	bed_copy(o->bed, BED_WORK, WQE_OP_WRITE,
		(uint8_t)((barrier == FENCE ? WQE_FENCE : 0) | completion(o, BED_WORK, trial)),
		&m->hit[trial], &m->patch[trial], 1);
}

/* ---- runs ------------------------------------------------------------------------------- */

/* Adds to *@late the trials in which the old bytes were used. 1, or as a check returns */
static int run_once(struct order *o, enum barrier barrier, unsigned *late)
{
	struct memory *m = (struct memory *)o->bed->memory;
	unsigned first = o->bed->posted[BED_WORK];
	bool enables = o->write == write_enables;
	int r;

	memset(m, 0, sizeof(*m));
	m->mark = 1;
	m->source[MAX_READ - 1] = o->last;
	for (unsigned i = 0; i < o->in_run; i++)
		o->write(o, i, barrier);
	if (o->bed->probe->load)
		load_feed(o->bed->probe->load);
	r = bed_enable(o->bed, BED_WORK, enables ? first + BED_GROUP : o->bed->posted[BED_WORK]);
	for (unsigned q = 0; q < BED_QUEUES && r >= 0; q++)
		if (o->cqes[q])
			r = bed_expect(
				o->bed, &o->bed->cq[q], o->cqes[q] - 1, "a trial did not end", o->result);
	for (unsigned i = 0; i < o->in_run && r > 0; i++)
		*late += !__atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
	return r;
}

static int run(struct order *o, enum barrier barrier, const char *denial)
{
	unsigned runs = probe_trials(o->bed->probe, TRIALS / o->in_run), late = 0, stale = 0, n = 0;
	unsigned control = CONTROL / o->in_run;
	int r = 1;

	for (unsigned i = 0; i < control && r > 0; i++)
		r = run_once(o, NOTHING, &late);
	for (; n < runs && r > 0 && !stale; n++)
		r = run_once(o, barrier, &stale);
	if (r <= 0)
		return r;
	o->result->tried = (uint64_t)n * o->in_run;
	o->result->showed = o->result->tried * late / CONTROL;
	probe_measured(o->result, "without it %u of %u were late", late, CONTROL);
	return stale ? probe_denies(o->result, "%s: %u times of %u", denial, stale, n * o->in_run) : 1;
}

static int enables(struct bed *bed, struct probe_result *result)
{
	enum barrier barrier = *(const enum barrier *)bed->arg;
	struct order o = {bed, result, BED_WQEBBS / (2 * BED_GROUP), {0}, WQE_OP_WRITE, write_enables};

	return run(&o, barrier,
		barrier == AWAIT ? "a WQE was fetched without the data of a READ whose CQE had been awaited"
				 : "a WQE was fetched before the READ in front of the fence had ended");
}

int check_awaited_read(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, NULL, result, enables, &(enum barrier){AWAIT});
}

int check_fenced_enable(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, NULL, result, enables, &(enum barrier){FENCE});
}

int check_fenced_write(struct bed *bed, struct probe_result *result)
{
	struct order o = {bed, result, BED_WQEBBS / 2, {0}, 1, write_copies};

	return run(&o, FENCE, "a fenced WRITE sent what had been there before the READ in front of it");
}
