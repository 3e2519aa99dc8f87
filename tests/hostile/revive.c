/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/hostile/revive.h"

struct ibv_qp_attr revive_path(const struct raw_client *c)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	raw_need(ibv_query_qp(c->id->qp, &attr,
			 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_DEST_QPN,
			 &init) == 0,
		"query");
	return attr;
}

void revive(struct raw_client *c, const struct ibv_qp_attr *path, uint32_t qpn)
{
	struct ibv_qp_attr attr = *path;

	attr.qp_state = IBV_QPS_RESET;
	raw_need(ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE) == 0, "to RESET");
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	attr.pkey_index = 0;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	raw_need(ibv_modify_qp(c->id->qp, &attr,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
		"to INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = qpn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	raw_need(ibv_modify_qp(c->id->qp, &attr,
			 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
		"to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 8;
	attr.retry_cnt = 1;
	attr.rnr_retry = 1;
	attr.max_rd_atomic = 1;
	raw_need(ibv_modify_qp(c->id->qp, &attr,
			 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				 IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"to RTS");
}
