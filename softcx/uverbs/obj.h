/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * obj.h - protection domains, memory regions, completion queues, shared receive queues and
 * address handles, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then. Limits are those that
 * caps.h reports.
 */
#ifndef SOFTCX_UVERBS_OBJ_H
#define SOFTCX_UVERBS_OBJ_H

#include "softcx/uverbs/event.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

struct uverbs_pd {
	struct uverbs_obj obj;
	uint32_t pdn;
};

int uverbs_pd_create(struct uverbs_file *file, struct uverbs_pd **pd);
int uverbs_pd_find(struct uverbs_file *file, uint64_t handle, struct uverbs_pd **pd);

struct uverbs_mr {
	struct uverbs_obj obj;
	struct uverbs_pd *pd;
	struct hw_mem *mem;
	uint64_t va, iova, len;
	unsigned access; /* IB_UVERBS_ACCESS_* */
	uint32_t key;    /* lkey and rkey */
};

int uverbs_mr_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_reg_mr *req,
	struct uverbs_mr **mr);
/** IBV_REREG_MR_*: another PD or other rights keep the key; for other memory a new one comes. */
int uverbs_mr_rereg(struct uverbs_mr *mr, struct nic_call *call, const struct ib_uverbs_rereg_mr *req);
int uverbs_mr_find(struct uverbs_file *file, uint64_t handle, struct uverbs_mr **mr);

struct uverbs_mw {
	struct uverbs_obj obj;
	uint32_t key; /* as made; each bind changes its variant */
};

/** @type: IB_MW_TYPE_*, which is 1 or 2. */
int uverbs_mw_create(struct uverbs_file *file, uint64_t pd_handle, unsigned type, struct uverbs_mw **mw);

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

/** @dmac: where UD packets to the address go. RoCE needs a GRH: -EINVAL without. */
int uverbs_ah_create(struct uverbs_file *file, const struct ib_uverbs_create_ah *req, uint8_t dmac[6],
	struct uverbs_obj **ah);

#endif
