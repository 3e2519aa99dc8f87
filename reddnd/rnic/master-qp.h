/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * master-qp.h - a queue pair whose SQ is not managed (QPC.cd_master). It enables the first WQEs of managed
 * SQs, which execute nothing until then.
 */
#ifndef RNIC_MASTER_QP_H
#define RNIC_MASTER_QP_H

#include "reddnd/rnic/qp.h"

struct master_qp {
	struct rnic_device *dev;
	struct ledger_slot *slot; /* or NULL */
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
	unsigned waits; /* WQEs whose CQEs nobody has waited for */
};

int master_qp_init(struct master_qp *m, struct rnic_pd *pd, struct rnic_arena *arena);
void master_qp_deinit(struct master_qp *m); /* fine on one that is all zero */

/**
 * Enables WQEs of queue @qpn up to index @index (exclusive, WQEBBs since RESET), and waits some microseconds
 * for the completion. -ETIMEDOUT or -EIO when there is none: the WQEs may be enabled or not. The master QP is
 * then destroyed, and the next call makes it again, with another CQ; errors of that are returned too.
 */
int master_qp_enable(struct master_qp *m, uint32_t qpn, uint16_t index);

/** The same for the RQ of a managed queue pair: RECVs up to producer index @index can be used. */
int master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);

/**
 * The same without the wait, so that there is time for other things: fewer than 64 before master_qp_wait(),
 * which waits for all of them, and has their errors. Who calls another of these functions meanwhile waits for
 * them, and gets their errors.
 */
int master_qp_post(struct master_qp *m, uint32_t qpn, uint16_t index);
int master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);
int master_qp_wait(struct master_qp *m); /* 0 if there is nothing to wait for */

/** There is something to wait for. */
static inline bool master_qp_has_posted(const struct master_qp *m)
{
	return m->waits > 0;
}

/** Posts one signalled NOP and waits for its CQE: cq then counts one more, for WAITs. Errors as above. */
int master_qp_tick(struct master_qp *m);

#endif
