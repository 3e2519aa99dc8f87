/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CALC: which operations are right, what is sent behind the number, and how many a queue sends in a second.
 * What a device has not fails the queue, so then each operation is tried on queues of its own.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "reddnd/rnic/device.h"
#include "util/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS = 4, SLOT = 32, UNTOUCHED = 0xee };
enum { RATED = 63 /* WQEs for a rate */ };

struct memory {
	struct {
		uint64_t value, id; /* BE64 */
	} operand[PAIRS][2];
	uint8_t result[PAIRS][SLOT];
};

/* As unsigned numbers and as signed ones, either of a pair is larger; sums overflow */
static const uint64_t pairs[PAIRS][2] = {
	{1, 2},
	{0x8000000000000000, 0x7fffffffffffffff},
	{0x00ff00ff00ff00ff, 0x0ff00ff00ff00ff1},
	{UINT64_MAX, 0xfedcba9876543210},
};

static const struct op {
	const char *name;
	uint8_t opmod;
} ops[] = {{"ADD", WQE_CALC_ADD}, {"MAX", WQE_CALC_MAXLOC}, {"AND", WQE_CALC_AND}, {"OR", WQE_CALC_OR},
	{"XOR", WQE_CALC_XOR}};

struct trial {
	const struct op *op; /* NULL: all, then the rates */
	double mops, plain;  /* millions per second, with CALC and without */
	char sent[80];       /* what is behind the numbers */
};

static uint64_t expected(const struct op *op, uint64_t a, uint64_t b)
{
	switch (op->opmod) {
	case WQE_CALC_ADD:
		return a + b;
	case WQE_CALC_MAXLOC:
		return a > b ? a : b;
	case WQE_CALC_AND:
		return a & b;
	case WQE_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* 1: all results are right. 0: not, with the words */
static int compare(const struct memory *m, const struct op *op, struct probe_result *result)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		uint64_t got = wqe_get64(m->result[i]);

		if (got != expected(op, pairs[i][0], pairs[i][1]))
			return probe_denies(result, "%#" PRIx64 " of %#" PRIx64 " and %#" PRIx64, got,
				pairs[i][0], pairs[i][1]);
	}
	return 1;
}

/* What is behind the results of a MAX */
static void describe_sent(const struct memory *m, char *text, size_t size)
{
	bool untouched = true, zeros = true, ids = true, more = false;

	for (unsigned i = 0; i < PAIRS; i++) {
		uint64_t behind = wqe_get64(m->result[i] + 8);

		untouched &= behind == UNTOUCHED * (UINT64_MAX / 0xff);
		zeros &= behind == 0;
		ids &= behind == be64toh(m->operand[i][pairs[i][1] > pairs[i][0]].id);
		for (unsigned k = WQE_CALC_OPERAND; k < SLOT; k++)
			more |= m->result[i][k] != UNTOUCHED;
	}
	snprintf(text, size, "%s; ",
		more        ? "more than 16 bytes are sent"
		: untouched ? "8 bytes are sent"
		: zeros     ? "16 bytes are sent, 8 of them 0"
		: ids       ? "16 bytes are sent, 8 of them the id of the largest"
			    : "16 bytes are sent, 8 of them without meaning");
}

static void set_operands(struct memory *m)
{
	memset(m->result, UNTOUCHED, sizeof(m->result));
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < PAIRS; i++) {
			m->operand[i][k].value = htobe64(pairs[i][k]);
			m->operand[i][k].id = htobe64(2 * i + k + 1);
		}
}

/* @n WQEs with @opmod, 0: without CALC, of which the first and the last have a CQE; to the end of the last:
 * the times of these */
static int post(struct bed *bed, uint8_t opmod, unsigned n, uint64_t at[2], struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	struct rnic_cq *cq = &bed->cq[BED_WORK];
	struct rnic_cqe cqe;
	int r;

	set_operands(m);
	for (unsigned i = 0; i < n; i++)
		bed_copy(bed, BED_WORK, WQE_OP_WRITE, i == 0 || i == n - 1 ? WQE_SIGNALLED : 0,
			m->result[i % PAIRS], m->operand[i % PAIRS], sizeof(m->operand[0]))[WQE_OPMOD] =
			opmod;
	bed_pad(bed, BED_WORK, false);
	r = bed_start(bed);
	for (unsigned i = 0; i < 2 && r >= 0; i++) {
		r = bed_expect(bed, cq, cq->consumer, "it did not complete", result);
		if (r <= 0 || !rnic_cq_poll(cq, &cqe))
			return r;
		at[i] = cqe.timestamp;
	}
	return r;
}

static int run_op(struct bed *bed, struct trial *t, const struct op *op, struct probe_result *result)
{
	const struct memory *m = (const struct memory *)bed->memory;
	uint64_t at[2];
	int r = post(bed, op->opmod, PAIRS, at, result);

	if (r <= 0)
		return r;
	if (op->opmod == WQE_CALC_MAXLOC)
		describe_sent(m, t->sent, sizeof(t->sent));
	return compare(m, op, result);
}

static int rate(struct bed *bed, uint8_t opmod, double *mops, struct probe_result *result)
{
	uint64_t at[2] = {0}, ns = 0;
	int r = post(bed, opmod, RATED, at, result);

	if (r > 0 && rnic_stamps_between(bed->block.dev, at[0], at[1], &ns) && ns)
		*mops = (RATED - 1) * 1e3 / (double)ns;
	return r;
}

static int run(struct bed *bed, struct probe_result *result)
{
	struct trial *t = bed->arg;
	int r = 1;

	if (t->op)
		return run_op(bed, t, t->op, result);
	for (unsigned i = 0; i < COUNT(ops) && r > 0; i++)
		r = run_op(bed, t, &ops[i], result);
	if (r > 0)
		r = rate(bed, WQE_CALC_MAXLOC, &t->mops, result);
	return r > 0 ? rate(bed, 0, &t->plain, result) : r;
}

/* Each operation by itself. Those that are wrong are named in the words, with the reason of the first. If
 * none is, the words of all together stay */
static int check_each(const struct probe *probe, struct trial *t, struct probe_result *result)
{
	char wrong[40] = "", why[sizeof(result->words)];
	size_t used = 0;
	int r;

	for (unsigned i = 0; i < COUNT(ops); i++) {
		t->op = &ops[i];
		r = bed_use(probe, NULL, result, run, t);
		if (r < 0)
			return r;
		if (r > 0) {
			result->value |= 1u << ops[i].opmod;
			continue;
		}
		if (!used)
			memcpy(why, result->words, sizeof(why));
		used += (size_t)snprintf(
			wrong + used, sizeof(wrong) - used, "%s%s", used ? ", " : "", ops[i].name);
	}
	return used ? probe_denies(result, "%s: %s", wrong, why) : 0;
}

/* result->value has a bit for the opmod of each operation that is right */
int check_calc(struct probe *probe, struct probe_result *result)
{
	struct trial t = {0};
	int r = bed_use(probe, NULL, result, run, &t);

	if (r == 0)
		return check_each(probe, &t, result);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < COUNT(ops); i++)
		result->value |= 1u << ops[i].opmod;
	if (!t.mops || !t.plain)
		return probe_measured(result, "%sno rate: the device does not report its clock", t.sent);
	return probe_measured(result, "%s%.3g M/s in one queue, %.3g without CALC", t.sent, t.mops, t.plain);
}
