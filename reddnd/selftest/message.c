/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/selftest/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/selftest/testbed.h"

#include <errno.h>

enum { TOO_LONG = TESTBED_MESSAGE + 1 };

struct memory {
	uint8_t source[TOO_LONG], sink[TOO_LONG];
};

_Static_assert(sizeof(struct memory) <= TESTBED_MEMORY, "the testbed is too small");

static void write_message(struct testbed *bed, struct memory *m, uint32_t len)
{
	uint8_t *w = testbed_wqe(bed, TESTBED_TARGET, WQE_OP_WRITE, 3, WQE_SIGNALLED);

	testbed_remote(bed, w, m->sink);
	testbed_sge(bed, w + WQE_RDMA_SGE, m->source, len);
}

/* Lets the NIC send the first @n messages */
static int enable(struct testbed *bed, uint16_t n)
{
	return master_qp_enable(bed->master, bed->qp[TESTBED_WORK].qpn, n);
}

/* The longest message, then one that is longer */
static int run(struct testbed *bed)
{
	struct memory *m = (struct memory *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	m->source[TESTBED_MESSAGE - 1] = m->source[TOO_LONG - 1] = 1;
	write_message(bed, m, TESTBED_MESSAGE);
	write_message(bed, m, TOO_LONG);
	/* The working queue is written before the NIC may fetch any of it */
	testbed_sync(bed, WQE_OP_SEND_EN, 0, 1, bed->qp[TESTBED_TARGET].qpn);
	testbed_sync(bed, WQE_OP_SEND_EN, 0, 2, bed->qp[TESTBED_TARGET].qpn);
	r = enable(bed, 1);
	if (r < 0)
		return r;
	if (!testbed_has_cqe(&bed->cq[TESTBED_TARGET], 0) ||
		!rnic_cq_peek(&bed->cq[TESTBED_TARGET], 0, &cqe) || cqe.error ||
		!m->sink[TESTBED_MESSAGE - 1])
		return -EIO;
	r = enable(bed, 2);
	if (r < 0)
		return r;
	if (!testbed_has_cqe(&bed->cq[TESTBED_TARGET], 1) &&
		!rnic_cq_find_error(&bed->cq[TESTBED_TARGET], &cqe))
		return -EIO;
	/* A device that flushes more than was enabled has written over the first CQEs */
	return rnic_cq_find_error(&bed->cq[TESTBED_TARGET], &cqe) && !m->sink[TOO_LONG - 1];
}

int selftest_limits_messages(struct master_qp *master)
{
	struct testbed bed;
	int r = testbed_init(&bed, master);

	if (r == 0)
		r = run(&bed);
	testbed_deinit(&bed);
	return r;
}
