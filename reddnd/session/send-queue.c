/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/send-queue.h"

int session_send_queue_make(struct rnic_cq *cq, struct rnic_qp *qp, const struct rnic_block *block,
	const struct queue_layout_qp *layout, bool managed, uint64_t cq_cookie, uint64_t qp_cookie)
{
	const struct rnic_cq_attr cq_attr = {
		.cqes_off = layout->cqes_off,
		.db_off = layout->cq_db_off,
		.log_size = layout->cq_log_size,
		.overrun_ignore = true,
		.cookie = cq_cookie,
	};
	const struct rnic_qp_attr qp_attr = {
		.wq_off = layout->wq_off,
		.sq_wqebbs = layout->ring_wqebbs,
		.db_off = layout->qp_db_off,
		.send_cq = cq,
		.managed = managed,
		.cookie = qp_cookie,
	};
	int r = rnic_cq_init(cq, block, &cq_attr);

	return r == 0 ? rnic_qp_init(qp, block, &qp_attr) : r;
}
