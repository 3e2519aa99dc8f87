/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

#include <errno.h>

enum { TOO_LONG = BED_MESSAGE + 1 };

struct memory {
	uint8_t source[TOO_LONG], sink[TOO_LONG];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the testbed is too small");

static void write_message(struct bed *bed, struct memory *m, uint32_t len)
{
	uint8_t *w = bed_wqe(bed, BED_TARGET, WQE_OP_WRITE, 3, WQE_SIGNALLED);

	bed_remote(bed, w, m->sink);
	bed_sge(bed, w + WQE_RDMA_SGE, m->source, len);
}

/* Lets the NIC send the first @n messages */
static int enable(struct bed *bed, uint16_t n)
{
	return master_qp_enable(bed->master, bed->qp[BED_WORK].qpn, n);
}

/* The longest message, then one that is longer */
static int run(struct bed *bed)
{
	struct memory *m = (struct memory *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	m->source[BED_MESSAGE - 1] = m->source[TOO_LONG - 1] = 1;
	write_message(bed, m, BED_MESSAGE);
	write_message(bed, m, TOO_LONG);
	/* The working queue is written before the NIC may fetch any of it */
	bed_sync(bed, WQE_OP_SEND_EN, 0, 1, bed->qp[BED_TARGET].qpn);
	bed_sync(bed, WQE_OP_SEND_EN, 0, 2, bed->qp[BED_TARGET].qpn);
	r = enable(bed, 1);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&bed->cq[BED_TARGET], 0) || !rnic_cq_peek(&bed->cq[BED_TARGET], 0, &cqe) ||
		cqe.error || !m->sink[BED_MESSAGE - 1])
		return -EIO;
	r = enable(bed, 2);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&bed->cq[BED_TARGET], 1) && !rnic_cq_find_error(&bed->cq[BED_TARGET], &cqe))
		return -EIO;
	/* A device that flushes more than was enabled has written over the first CQEs */
	return rnic_cq_find_error(&bed->cq[BED_TARGET], &cqe) && !m->sink[TOO_LONG - 1];
}

int selftest_limits_messages(struct master_qp *master)
{
	struct bed bed;
	int r = bed_init(&bed, master);

	if (r == 0)
		r = run(&bed);
	bed_deinit(&bed);
	return r;
}
