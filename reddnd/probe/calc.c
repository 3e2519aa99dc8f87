/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CALC: which operations are right, what is sent behind the number, and how many a queue sends in a second.
 * What a device has not fails the queue, so then each operation is tried on queues of its own.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "reddnd/rnic/stamps.h"
#include "util/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS = 4, CHUNK = 64, ELEMENTS = CHUNK / 8, SLOT = 32, UNTOUCHED = 0xee };
enum { RATED = BED_RECVS - 1 /* WQEs for a rate: a vector takes a RECV */ };

struct memory {
	struct {
		uint64_t value, id; /* BE64 */
	} operand[PAIRS][2];
	uint8_t result[PAIRS][SLOT];
	_Alignas(CHUNK) uint64_t vectors[2][ELEMENTS], vector[2 * ELEMENTS];
};

/* As unsigned numbers and as signed ones, either of a pair is larger; sums overflow */
static const uint64_t pairs[PAIRS][2] = {
	{1, 2},
	{0x8000000000000000, 0x7fffffffffffffff},
	{0x00ff00ff00ff00ff, 0x0ff00ff00ff00ff1},
	{UINT64_MAX, 0xfedcba9876543210},
};

enum { MAX = 1 };
static const struct op {
	const char *name;
	uint8_t scalar, vector; /* opmod, 0: it has none; enum wqe_vcalc_op */
} ops[] = {
	{"ADD", WQE_CALC_ADD, WQE_VCALC_ADD},
	[MAX] = {"MAX", WQE_CALC_MAXLOC, WQE_VCALC_MAXLOC},
	{"AND", WQE_CALC_AND, WQE_VCALC_AND},
	{"OR", WQE_CALC_OR, WQE_VCALC_OR},
	{"XOR", WQE_CALC_XOR, WQE_VCALC_XOR},
	{"MIN", 0, WQE_VCALC_MIN},
};

/* One of the two forms */
struct form {
	/* Writes a WQE; @op 0: without CALC. @i: of which pair, if it has one */
	void (*post)(struct bed *bed, uint8_t op, unsigned i, uint8_t flags);
	unsigned wqes; /* with which all pairs are tried */
	/* 1: all results are right. 0: not, with the words */
	int (*compare)(const struct memory *m, const struct op *op, struct probe_result *result);
};

struct trial {
	const struct form *form;
	const struct op *op; /* NULL: all of the form, then the rates */
	double mops, plain;  /* millions per second, with CALC and without */
	char sent[80];       /* what is behind the numbers */
};

static uint64_t expected(const struct op *op, uint64_t a, uint64_t b)
{
	switch (op->vector) {
	case WQE_VCALC_ADD:
		return a + b;
	case WQE_VCALC_MAXLOC:
		return a > b ? a : b;
	case WQE_VCALC_MIN:
		return a < b ? a : b;
	case WQE_VCALC_AND:
		return a & b;
	case WQE_VCALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static int compare(const struct op *op, uint64_t a, uint64_t b, uint64_t got, struct probe_result *result)
{
	return got == expected(op, a, b)
		       ? 1
		       : probe_denies(result, "%#" PRIx64 " of %#" PRIx64 " and %#" PRIx64, got, a, b);
}

/* ---- numbers ---------------------------------------------------------------------------- */

static void post_scalar(struct bed *bed, uint8_t op, unsigned i, uint8_t flags)
{
	struct memory *m = (struct memory *)bed->memory;

	bed_copy(bed, BED_WORK, WQE_OP_WRITE, flags, m->result[i], m->operand[i],
		sizeof(m->operand[i]))[WQE_OPMOD] = op;
}

static int compare_scalars(const struct memory *m, const struct op *op, struct probe_result *result)
{
	int r = 1;

	for (unsigned i = 0; i < PAIRS && r > 0; i++)
		r = compare(op, pairs[i][0], pairs[i][1], wqe_get64(m->result[i]), result);
	return r;
}

static const struct form scalar = {post_scalar, PAIRS, compare_scalars};

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

/* ---- vectors ---------------------------------------------------------------------------- */

/* Two of one chunk, of numbers in the order of the host, which the queue sends to itself */
static void post_vector(struct bed *bed, uint8_t op, unsigned i, uint8_t flags)
{
	enum { CALC = WQE_SEND_SGE, SGE = CALC + WQE_VCALC_BYTES };
	struct memory *m = (struct memory *)bed->memory;
	uint8_t *w = bed_wqe(bed, BED_WORK, WQE_OP_SEND, (op ? SGE : CALC) / WQE_DS + 1, flags);

	(void)i;
	bed_sge(bed, bed_recv(bed, BED_WORK), m->vector, sizeof(m->vector));
	bed_sge(bed, w + (op ? SGE : CALC), m->vectors, sizeof(m->vectors));
	if (!op)
		return;
	w[WQE_OPMOD] = WQE_CALC_VECTOR;
	w[CALC + WQE_VCALC_OPS] = op;
	w[CALC + WQE_VCALC_TYPE] = WQE_VCALC_U64;
	w[CALC + WQE_VCALC_OPTIONS] = WQE_VCALC_LITTLE_ENDIAN;
	wqe_put16(w + CALC + WQE_VCALC_COUNT, 2);
}

static int compare_vectors(const struct memory *m, const struct op *op, struct probe_result *result)
{
	int r = 1;

	for (unsigned i = 0; i < ELEMENTS && r > 0; i++)
		r = compare(op, le64toh(m->vectors[0][i]), le64toh(m->vectors[1][i]), le64toh(m->vector[i]),
			result);
	if (r > 0 && *(const uint8_t *)&m->vector[ELEMENTS] != UNTOUCHED)
		return probe_denies(result, "more than one vector");
	return r;
}

static const struct form vector = {post_vector, 1, compare_vectors};

/* ---- either form ------------------------------------------------------------------------ */

static void set_operands(struct memory *m)
{
	memset(m->result, UNTOUCHED, sizeof(m->result));
	memset(m->vector, UNTOUCHED, sizeof(m->vector));
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < PAIRS; i++) {
			m->operand[i][k].value = htobe64(pairs[i][k]);
			m->operand[i][k].id = htobe64(2 * i + k + 1);
		}
		for (unsigned i = 0; i < ELEMENTS; i++)
			m->vectors[k][i] = htole64(pairs[i % PAIRS][k] + i / PAIRS);
	}
}

static uint8_t number_of(const struct form *form, const struct op *op)
{
	return form == &scalar ? op->scalar : op->vector;
}

/* @n WQEs, of which the first and the last have a CQE, to the end of the last: the times of these */
static int post(struct bed *bed, const struct form *form, uint8_t op, unsigned n, uint64_t at[2],
	struct probe_result *result)
{
	struct rnic_cq *cq = &bed->cq[BED_WORK];
	struct rnic_cqe cqe;
	int r;

	set_operands((struct memory *)bed->memory);
	for (unsigned i = 0; i < n; i++)
		form->post(bed, op, i % PAIRS, i == 0 || i == n - 1 ? WQE_SIGNALLED : 0);
	bed_pad(bed, BED_WORK, false);
	rnic_qp_post_recvs(&bed->qp[BED_WORK], bed->recvs[BED_WORK]);
	r = bed_start(bed);
	for (unsigned i = n > 1 ? 0 : 1; i < 2 && r >= 0; i++) {
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
	int r = post(bed, t->form, number_of(t->form, op), t->form->wqes, at, result);

	if (r <= 0)
		return r;
	if (t->form == &scalar && op == &ops[MAX])
		describe_sent(m, t->sent, sizeof(t->sent));
	return t->form->compare(m, op, result);
}

static int rate(struct bed *bed, const struct probe *probe, const struct form *form, uint8_t op, double *mops,
	struct probe_result *result)
{
	uint64_t at[2] = {0}, ns = 0;
	int r = post(bed, form, op, RATED, at, result);

	if (r > 0 && rnic_stamps_between(probe->master->block.dev, at[0], at[1], &ns) && ns)
		*mops = (RATED - 1) * 1e3 / (double)ns;
	return r;
}

static int run(struct bed *bed, const struct probe *probe, struct probe_result *result, void *arg)
{
	struct trial *t = arg;
	int r = 1;

	if (t->op)
		return run_op(bed, t, t->op, result);
	for (unsigned i = 0; i < COUNT(ops) && r > 0; i++)
		if (number_of(t->form, &ops[i]))
			r = run_op(bed, t, &ops[i], result);
	if (r > 0)
		r = rate(bed, probe, t->form, number_of(t->form, &ops[MAX]), &t->mops, result);
	return r > 0 ? rate(bed, probe, t->form, 0, &t->plain, result) : r;
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
		if (!number_of(t->form, t->op))
			continue;
		r = bed_use(probe, NULL, result, run, t);
		if (r < 0)
			return r;
		if (r > 0) {
			result->value |= 1u << number_of(t->form, t->op);
			continue;
		}
		if (!used)
			memcpy(why, result->words, sizeof(why));
		used += (size_t)snprintf(
			wrong + used, sizeof(wrong) - used, "%s%s", used ? ", " : "", ops[i].name);
	}
	return used ? probe_denies(result, "%s: %s", wrong, why) : 0;
}

/* result->value has a bit for the number of each operation that is right */
static int check_form(const struct probe *probe, const struct form *form, struct probe_result *result)
{
	struct trial t = {.form = form};
	int r = bed_use(probe, NULL, result, run, &t);

	if (r == 0)
		return check_each(probe, &t, result);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < COUNT(ops); i++)
		result->value |= (1u << number_of(form, &ops[i])) & ~1u;
	if (!t.mops || !t.plain)
		return probe_measured(result, "%sno rate: the device does not report its clock", t.sent);
	return probe_measured(result, "%s%.3g M/s in one queue, %.3g without CALC", t.sent, t.mops, t.plain);
}

int check_calc(struct probe *probe, struct probe_result *result)
{
	return check_form(probe, &scalar, result);
}

int check_vector_calc(struct probe *probe, struct probe_result *result)
{
	if (!rnic_device_caps(probe->master->block.dev)->vector_calc)
		return probe_denies(result, "the device has none");
	return check_form(probe, &vector, result);
}
