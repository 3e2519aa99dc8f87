/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * srq.h - shared receive queues, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then. Limits are those that caps.h reports.
 */
#ifndef SOFTCX_UVERBS_SRQ_H
#define SOFTCX_UVERBS_SRQ_H

#include "softcx/uverbs/mr.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

struct uverbs_srq {
	struct uverbs_obj obj;
	struct hw_srq *hw;
	struct uverbs_channel *async;
	uint32_t max_wr, max_sge, limit, posted;
};

int uverbs_srq_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_create_srq *req,
	struct uverbs_channel *async, const struct mlx5_ib_create_srq *drv, struct uverbs_srq **srq);
int uverbs_srq_modify(struct uverbs_srq *srq, uint32_t mask, uint32_t limit);
int uverbs_srq_destroy(struct uverbs_srq *srq, uint32_t *events_reported);
int uverbs_srq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_srq **srq);

#endif
