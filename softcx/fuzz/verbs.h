/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs.h - connecting queue pairs, for the programs of the fuzzer. */
#ifndef SOFTCX_FUZZ_VERBS_H
#define SOFTCX_FUZZ_VERBS_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>

enum { FUZZ_PORT = 1, FUZZ_GID = 1, FUZZ_QKEY = 0x1ee7 };

/** From any state to RTS. @dest: of a connected queue. 0 or an error number. */
static inline int fuzz_connect(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	bool ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
	    err;

	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
		.port_num = FUZZ_PORT,
		.qkey = FUZZ_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0)};
	err = ibv_modify_qp(qp, &attr, mask);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = FUZZ_PORT, .grh = {.sgid_index = FUZZ_GID}}};
	mask = IBV_QP_STATE;
	if (!ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (!err)
		err = ibv_query_gid(qp->context, FUZZ_PORT, FUZZ_GID, &attr.ah_attr.grh.dgid);
	if (!err)
		err = ibv_modify_qp(qp, &attr, mask);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 4};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return err ? err : ibv_modify_qp(qp, &attr, mask);
}

static inline struct ibv_context *fuzz_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	return ctx;
}

#endif
