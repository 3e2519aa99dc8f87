/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp.h - queue pairs of the verbs ABI: creation from mlx5 driver data, transitions with the attributes that
 * each one requires and allows, queries, and their end.
 */
#ifndef SOFTCX_UVERBS_QP_H
#define SOFTCX_UVERBS_QP_H

#include "softcx/uverbs/event.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

struct uverbs_qp {
	struct uverbs_obj obj;
	struct hw_qp *hw;
	struct uverbs_channel *async;
	enum hw_qp_type type;
	struct ib_uverbs_qp_cap cap;
	bool sig_all;
	struct ib_uverbs_qp_dest dest; /* as last set: the device does not keep all of it */
	uint8_t port_num;
	uint32_t posted;
};

/** Values of create_flags that Linux takes for RC QPs and libibverbs does not (linux/rdma/ib_verbs.h). */
enum {
	UVERBS_QP_CROSS_CHANNEL = 1 << 2,
	UVERBS_QP_MANAGED_SEND = 1 << 3,
	UVERBS_QP_MANAGED_RECV = 1 << 4,
};

/**
 * @req: of the extended command; the others leave its last members 0. Answers NIC_AGAIN, -EOPNOTSUPP for QP
 * types and flags that the device lacks, -EINVAL for the rest.
 */
int uverbs_qp_create(struct uverbs_file *file, struct nic_call *call,
	const struct ib_uverbs_ex_create_qp *req, struct uverbs_channel *async,
	const struct mlx5_ib_create_qp *drv, struct uverbs_qp **qp);
uint32_t uverbs_qp_number(const struct uverbs_qp *qp); /* 0: it has none yet */
int uverbs_qp_destroy(struct uverbs_qp *qp, uint32_t *events_reported);
int uverbs_qp_find(struct uverbs_file *file, uint64_t handle, struct uverbs_qp **qp);

/** @dctn: set when a target gets its number; NULL: there is no room for it, and a target refuses. */
int uverbs_qp_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn);
int uverbs_qp_query(const struct uverbs_qp *qp, struct ib_uverbs_query_qp_resp *resp);

#endif
