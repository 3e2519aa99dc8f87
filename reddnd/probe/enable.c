/* SPDX-License-Identifier: BSD-2-Clause */
/* What moves managed queues besides a SEND_EN or RECV_EN that is ahead: an index behind, and a doorbell; and
 * which RECVs a RECV_EN lets a message use. */
#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

#include <errno.h>

enum { WORDS = 6, RINGS = 30 };

struct words {
	uint64_t count[WORDS]; /* by a FETCH_ADD of 1, which shows a WQE that runs twice */
	uint64_t old, source, received[WORDS];
};

static void write_counts(struct bed *bed, struct words *w)
{
	for (unsigned i = 0; i < WORDS; i++)
		bed_add(bed, BED_TARGET, WQE_SIGNALLED, &w->count[i], 1, &w->old);
}

/* 1: the first @n have run once each, the others have not; 0: not so */
static int ran(const struct words *w, unsigned n, const char *after, struct probe_result *result)
{
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t times = __atomic_load_n(&w->count[i], __ATOMIC_ACQUIRE);

		if (times != (i < n))
			return probe_denies(result, "WQE %u of %u enabled ones has run %u times %s", i, n,
				(unsigned)times, after);
	}
	return 1;
}

/* Enables up to @index: @then so many have run, and nothing else happens */
static int step(
	struct bed *bed, unsigned index, unsigned then, const char *after, struct probe_result *result)
{
	int r = bed_enable(bed, BED_TARGET, index);

	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_TARGET], then - 1, "an enable had no effect", result);
	if (r <= 0)
		return r;
	bed_sleep(BED_SETTLE_MS / 5);
	r = bed_fine(bed, result);
	return r > 0 ? ran((const struct words *)bed->memory, then, after, result) : r;
}

int check_smaller_enable(struct bed *bed, struct probe_result *result)
{
	int r;

	write_counts(bed, (struct words *)bed->memory);
	r = step(bed, 3, 3, "after a SEND_EN", result);
	if (r > 0)
		r = step(bed, 1, 3, "after a SEND_EN with a smaller index", result);
	if (r > 0)
		r = step(bed, 3, 3, "after a SEND_EN with the same index", result);
	return r > 0 ? step(bed, 5, 5, "after a SEND_EN that is ahead again", result) : r;
}

/* Enables RECVs up to @index: @then so many are used, and no more */
static int recv_step(
	struct bed *bed, unsigned index, unsigned then, const char *after, struct probe_result *result)
{
	struct rnic_cqe cqe;
	int r = master_qp_enable_recvs(bed->master, bed->qp[BED_TARGET].qpn, (uint16_t)index);

	if (r == 0)
		r = bed_expect(bed, &bed->recv_cq[BED_TARGET], then - 1, "a RECV_EN had no effect", result);
	if (r <= 0)
		return r;
	bed_sleep(BED_SETTLE_MS / 5);
	if (rnic_cq_peek(&bed->recv_cq[BED_TARGET], then, &cqe))
		return probe_denies(result, "RECV %u was used %s", then, after);
	return bed_fine(bed, result);
}

static int smaller_recv(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	for (unsigned i = 0; i < WORDS; i++) {
		bed_sge(bed, bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, 0) + WQE_SEND_SGE, &w->source, 8);
		bed_sge(bed, bed_recv(bed, BED_TARGET), &w->received[i], 8);
	}
	r = bed_enable(bed, BED_TARGET, WORDS);
	if (r == 0)
		r = recv_step(bed, 3, 3, "after a RECV_EN", result);
	if (r == 0 && !rnic_cq_peek(&bed->recv_cq[BED_TARGET], 0, &cqe)) /* which is another check */
		return probe_cannot(result, -EOPNOTSUPP, "RECV_EN does not work");
	if (r > 0)
		r = recv_step(bed, 1, 3, "after a RECV_EN with a smaller index", result);
	return r > 0 ? recv_step(bed, 5, 5, "after a RECV_EN that is ahead again", result) : r;
}

int check_smaller_recv_enable(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, &(struct bed_attr){.managed_recvs = true}, result, smaller_recv, NULL);
}

/* ---- doorbells -------------------------------------------------------------------------- */

/*
 * Rings for the first WQE. One ring could be missed where another one of this page follows at once, so it is
 * repeated. Then a SEND_EN shows whether the queue still runs
 */
int check_doorbell(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	write_counts(bed, w);
	for (unsigned i = 0; i < RINGS; i++) {
		rnic_qp_ring(&bed->qp[BED_TARGET], 1);
		bed_sleep(1);
	}
	if (__atomic_load_n(&w->count[0], __ATOMIC_ACQUIRE))
		return probe_denies(result, "it runs the queue, as far as the doorbell record goes");
	r = bed_enable(bed, BED_TARGET, 1);
	if (r < 0)
		return r;
	bed_sleep(BED_SETTLE_MS);
	if (__atomic_load_n(&w->count[0], __ATOMIC_ACQUIRE) == 1)
		return probe_measured(result, "it is ignored");
	return probe_measured(result, "the queue fails%s",
		rnic_cq_find_error(&bed->cq[BED_TARGET], &cqe) ? ", with a CQE" : "");
}

enum { HOLD_MS = 2, MESSAGES = 3 };

#define SOURCE 0x0123456789abcdefull

struct recv_words {
	uint64_t source, received[MESSAGES];
};

/* As many SENDs as RECVs, all of which are enabled from the first on */
static int write_messages(struct bed *bed, struct recv_words *w)
{
	w->source = SOURCE;
	for (unsigned i = 0; i < MESSAGES; i++) {
		uint8_t *send = bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, 0);

		bed_sge(bed, send + WQE_SEND_SGE, &w->source, sizeof(w->source));
		bed_sge(bed, bed_recv(bed, BED_TARGET), &w->received[i], sizeof(w->source));
	}
	return bed_enable(bed, BED_TARGET, MESSAGES);
}

static int enable(struct bed *bed, unsigned index)
{
	return master_qp_enable_recvs(bed->master, bed->qp[BED_TARGET].qpn, (uint16_t)index);
}

/* Number @n is not received. 0 with the words if it is */
static int expect_none(const struct bed *bed, unsigned n, const char *words, struct probe_result *result)
{
	struct rnic_cqe cqe;

	bed_sleep(HOLD_MS);
	return rnic_cq_peek(&bed->recv_cq[BED_TARGET], n, &cqe) ? probe_denies(result, "%s", words) : 1;
}

static int expect(const struct bed *bed, unsigned n, const char *words, struct probe_result *result)
{
	const struct recv_words *w = (const struct recv_words *)bed->memory;
	int r = bed_expect(bed, &bed->recv_cq[BED_TARGET], n, words, result);

	if (r <= 0 || w->received[n] == SOURCE)
		return r;
	return probe_denies(result, "a message did not arrive as it was sent");
}

static int run(struct bed *bed, struct probe_result *result)
{
	int r = write_messages(bed, (struct recv_words *)bed->memory);

	if (r == 0)
		r = expect_none(bed, 0, "a RECV was used that no RECV_EN had enabled", result);
	for (unsigned i = 0; i < MESSAGES && r > 0; i++) {
		r = enable(bed, i + 1);
		if (r == 0)
			r = expect(bed, i,
				i ? "the next RECV_EN enabled nothing" : "a RECV_EN enabled nothing", result);
		if (r > 0 && i + 1 < MESSAGES)
			r = expect_none(bed, i + 1, "a RECV was used that no RECV_EN had enabled", result);
	}
	return r;
}

int check_recv_enable(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, &(struct bed_attr){.managed_recvs = true}, result, run, NULL);
}
