/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq.h - completion queues, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then. Limits are those that caps.h reports.
 */
#ifndef SOFTCX_UVERBS_CQ_H
#define SOFTCX_UVERBS_CQ_H

#include "softcx/uverbs/event.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

enum { UVERBS_TS_ANY = 0xff };

struct uverbs_cq {
	struct uverbs_obj obj;
	struct hw_cq *hw;
	struct uverbs_channel *comp, *async;
	uint32_t cqe; /* entries - 1 */
	uint8_t cqe_bytes;
	uint8_t ts_format; /* that queues of the CQ must have; UVERBS_TS_ANY if none */
	uint32_t comp_posted, async_posted;
};

struct uverbs_cq_req {
	uint64_t user_handle;
	uint32_t cqe;
	uint32_t comp_vector;
	uint32_t flags;               /* IB_UVERBS_CQ_FLAGS_* */
	struct uverbs_channel *comp;  /* or NULL */
	struct uverbs_channel *async; /* or NULL */
};

int uverbs_cq_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cq_req *req,
	const struct mlx5_ib_create_cq *drv, struct uverbs_cq **cq);
int uverbs_cq_resize(
	struct uverbs_cq *cq, struct nic_call *call, uint32_t cqe, const struct mlx5_ib_resize_cq *drv);
/** @resp: events that the application has read and so has to acknowledge before it frees the CQ. */
int uverbs_cq_destroy(struct uverbs_cq *cq, struct ib_uverbs_destroy_cq_resp *resp);
int uverbs_cq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_cq **cq);

#endif
