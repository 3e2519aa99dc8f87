/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

enum { TRIALS = 16 };

struct memory {
	uint8_t mark, hit[TRIALS];
};

/* The WQEs that the direct form of a condition leaves: a NOP whose operand did not match, and a WRITE whose
 * operand did */
static void write_trial(struct bed *bed, struct memory *m, unsigned trial)
{
	uint8_t *nop = bed_wqe(bed, BED_WORK, WQE_OP_NOP, 3, 0), *write;
	/* over all trials each bit of these bytes is wrong once */
	uint8_t wrong = (uint8_t)(1u << trial % 8 | (trial < 8 ? 0 : 0xa5));

	nop[WQE_OPMOD] = wrong;
	for (unsigned i = 0; i < 2; i++)
		nop[WQE_INDEX + i] ^= wrong;
	for (unsigned i = 0; i < 3; i++)
		nop[WQE_QPN_DS + i] ^= wrong;
	write = bed_wqe(bed, BED_WORK, WQE_OP_WRITE, 3, trial == TRIALS - 1 ? WQE_SIGNALLED : 0);
	for (unsigned i = 0; i < 2; i++)
		write[WQE_INDEX + i] ^= wrong;
	for (unsigned i = 0; i < 3; i++)
		write[WQE_QPN_DS + i] ^= wrong;
	bed_remote(bed, write, &m->hit[trial]);
	bed_sge(bed, write + WQE_RDMA_SGE, &m->mark, 1);
}

/* 1: all trials were executed; 0: not so */
static int run(struct bed *bed)
{
	struct memory *m = (struct memory *)bed->memory;
	char why[100];
	int r;

	m->mark = 1;
	for (unsigned i = 0; i < TRIALS; i++)
		write_trial(bed, m, i);
	r = bed_start(bed);
	if (r < 0)
		return r;
	r = bed_has_cqe(&bed->cq[BED_WORK], 0) && bed_errors(bed, why, sizeof(why)) == 0;
	for (unsigned i = 0; i < TRIALS && r; i++)
		r = __atomic_load_n(&m->hit[i], __ATOMIC_ACQUIRE);
	return r;
}

int selftest_unchecked_wqes(struct master_qp *master)
{
	struct bed bed;
	int r = bed_init(&bed, master);

	if (r == 0)
		r = run(&bed);
	bed_deinit(&bed);
	return r;
}
