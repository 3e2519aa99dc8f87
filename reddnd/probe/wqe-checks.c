/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs with the index and the queue pair number of another place. Firmware makes the NIC check them unless it
 * is configured otherwise, by means that no public source describes (DPDK reads wqe_index_ignore_cap; the
 * RedN artifact clears registers). Where the NIC checks them, only the queue of this check ends, with an
 * error.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum { TRIALS = 16, INDEX = 1, QPN = 2, OPMOD = 4, ALL = INDEX | QPN | OPMOD };

struct memory {
	uint8_t mark, hit[TRIALS];
};

static void spoil(uint8_t *w, uint8_t wrong, unsigned what)
{
	for (unsigned i = 0; i < 2 && what & INDEX; i++)
		w[WQE_INDEX + i] ^= wrong;
	for (unsigned i = 0; i < 3 && what & QPN; i++)
		w[WQE_QPN_DS + i] ^= wrong;
}

/* The WQEs that the direct form of a condition leaves: a NOP whose operand did not match, and a WRITE whose
 * operand did */
static void write_trial(struct bed *bed, struct memory *m, unsigned trial, unsigned what)
{
	uint8_t *nop = bed_wqe(bed, BED_WORK, WQE_OP_NOP, 3, 0);
	/* over all trials each bit of these bytes is wrong once */
	uint8_t wrong = (uint8_t)(1u << trial % 8 | (trial < 8 ? 0 : 0xa5));

	if (what & OPMOD)
		nop[WQE_OPMOD] = wrong;
	spoil(nop, wrong, what);
	spoil(bed_copy(bed, BED_WORK, WQE_OP_WRITE, trial == TRIALS - 1 ? WQE_SIGNALLED : 0, &m->hit[trial],
		      &m->mark, 1),
		wrong, what);
}

/* 1: all trials were executed; 0: not so */
static int run(struct bed *bed, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	struct probe_result none;
	int r;

	(void)result;
	m->mark = 1;
	for (unsigned i = 0; i < TRIALS; i++)
		write_trial(bed, m, i, *(const unsigned *)bed->arg);
	r = bed_start(bed);
	if (r < 0)
		return r;
	r = bed_expect(bed, &bed->cq[BED_WORK], 0, "", &none);
	for (unsigned i = 0; i < TRIALS && r > 0; i++)
		r = __atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
	return r;
}

/* The value is 1 if operands may stand there */
int check_wqe_checks(struct probe *probe, struct probe_result *result)
{
	static const unsigned what[] = {ALL, INDEX, QPN};
	int ignores[3] = {0};

	for (unsigned i = 0; i < 3; i++) {
		ignores[i] = bed_use(probe, NULL, result, run, (void *)&what[i]);
		if (ignores[i] < 0)
			return ignores[i];
	}
	result->value = (unsigned)ignores[0];
	if (!ignores[0] && !ignores[1] && !ignores[2])
		return 1;
	return probe_denies(result, "the index is %s, the number is %s%s", ignores[1] ? "ignored" : "checked",
		ignores[2] ? "ignored" : "checked", ignores[0] ? "; operands may stand there" : "");
}
