/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * master-qp.h - the one queue pair whose SQ is not managed: a managed SQ runs nothing until somebody enables
 * its first WQEs, and this is who does.
 */
#ifndef RNIC_MASTER_QP_H
#define RNIC_MASTER_QP_H

#include "reddnd/rnic/queue.h"

struct master_qp {
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
};

int master_qp_init(struct master_qp *m, struct rnic_pd *pd, struct rnic_arena *arena);
void master_qp_deinit(struct master_qp *m); /* fine on one that is all zero */

/**
 * Lets queue @qpn run up to WQE index @index (exclusive, WQEBBs since RESET), and waits until the device has
 * taken the order: microseconds. -ETIMEDOUT or -EIO when it does not; the master QP is of no use then.
 */
int master_qp_enable(struct master_qp *m, uint32_t qpn, uint16_t index);

/** The same for the RQ of a managed queue pair: RECVs up to producer index @index can be used. */
int master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);

/** Posts one signalled NOP and waits for its CQE likewise: one more CQE on cq. */
int master_qp_tick(struct master_qp *m);

#endif
