/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/cq.h"
#include "softcx/uverbs/qp-state.h"
#include "softcx/uverbs/write.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static int query_device(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_query_device req;
	struct ib_uverbs_ex_query_device_resp resp;
	struct mlx5_ib_query_device_resp drv;
	int r = uverbs_udata_in(&cmd->core, &req, sizeof(req), sizeof(req));

	if (r == 0 && (req.comp_mask || req.reserved))
		r = -EINVAL;
	if (r < 0)
		return r;
	uverbs_caps_device(file->dev, file->index, &resp);
	if (cmd->core.out_len < resp.response_length)
		resp.response_length = (uint32_t)cmd->core.out_len;
	uverbs_caps_device_drv(&drv, cmd->drv.out_len);
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv, sizeof(drv));
}

static int create_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_create_cq req;
	int r = uverbs_udata_in(&cmd->core, &req, sizeof(req), sizeof(req));

	if (r == 0 && (req.comp_mask || req.reserved))
		r = -EINVAL;
	return r ? r : uverbs_write_cq(file, call, cmd, &req, sizeof(struct ib_uverbs_ex_create_cq_resp));
}

static int create_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_create_qp req;
	struct mlx5_ib_create_qp drv;
	struct uverbs_qp *qp;
	int r = uverbs_udata_in(
		&cmd->core, &req, offsetofend(struct ib_uverbs_ex_create_qp, comp_mask), sizeof(req));

	if (r == 0 && (req.comp_mask || req.reserved))
		r = -EINVAL;
	if (r == 0 && (req.source_qpn || req.rwq_ind_tbl_handle))
		r = -EINVAL;
	if (r == 0)
		r = uverbs_udata_in(&cmd->drv, &drv, offsetof(struct mlx5_ib_create_qp, uidx), sizeof(drv));
	if (r == 0)
		r = uverbs_qp_create(file, call, &req, file->async, &drv, &qp);
	if (r)
		return r;
	const struct ib_uverbs_ex_create_qp_resp resp = {
		.base =
			{
				.qp_handle = qp->obj.handle,
				.qpn = uverbs_qp_number(qp),
				.max_send_wr = qp->cap.max_send_wr,
				.max_recv_wr = qp->cap.max_recv_wr,
				.max_send_sge = qp->cap.max_send_sge,
				.max_recv_sge = qp->cap.max_recv_sge,
				.max_inline_data = qp->cap.max_inline_data,
			},
		.response_length = sizeof(resp),
	};
	const struct mlx5_ib_create_qp_resp drv_resp = {.bfreg_index = UINT32_MAX};
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv_resp, sizeof(drv_resp));
}

static int modify_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	const struct ib_uverbs_ex_modify_qp_resp resp = {.response_length = sizeof(resp)};
	struct mlx5_ib_modify_qp_resp drv_resp = {.response_length = sizeof(drv_resp)};
	bool has_dctn = cmd->drv.out_len >= offsetofend(struct mlx5_ib_modify_qp_resp, dctn);
	struct ib_uverbs_ex_modify_qp req;
	struct mlx5_ib_modify_qp drv;
	struct uverbs_qp *qp;
	int r = uverbs_udata_in(&cmd->core, &req, sizeof(req.base), sizeof(req));

	if (r == 0)
		r = uverbs_udata_in(&cmd->drv, &drv, 0, sizeof(drv));
	if (r == 0 &&
		(drv.comp_mask || drv.burst_info.reserved || !uverbs_udata_cleared(&cmd->drv, sizeof(drv))))
		r = -EOPNOTSUPP;
	if (r == 0 && uverbs_qp_find(file, req.base.qp_handle, &qp) < 0)
		r = -EINVAL;
	if (r == 0)
		r = uverbs_qp_modify(qp, &req.base, has_dctn ? &drv_resp.dctn : NULL);
	if (r == 0)
		r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv_resp, sizeof(drv_resp));
}

static int modify_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	enum { CQ_MODERATE = 1 }; /* IB_CQ_MODERATE */
	struct ib_uverbs_ex_modify_cq req;
	struct uverbs_cq *cq;
	int r = uverbs_udata_in(&cmd->core, &req, sizeof(req), sizeof(req));

	(void)call;
	if (r == 0 && (!req.attr_mask || req.reserved))
		r = -EINVAL;
	if (r == 0 && (req.attr_mask > CQ_MODERATE || req.attr.cq_period > 0xfff))
		r = -EOPNOTSUPP;
	if (r == 0 && uverbs_cq_find(file, req.cq_handle, &cq) < 0)
		r = -EINVAL;
	return r < 0 ? r : hw_cq_moderate(cq->hw, req.attr.cq_period, req.attr.cq_count);
}

/* Holes answer EOPNOTSUPP: steering, receive work queues, indirection tables. */
const struct uverbs_method uverbs_write_ex_methods[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] = {sizeof(struct ib_uverbs_ex_query_device),
		offsetofend(struct ib_uverbs_ex_query_device_resp, response_length), true, query_device},
	[IB_USER_VERBS_EX_CMD_CREATE_CQ] = {sizeof(struct ib_uverbs_ex_create_cq),
		sizeof(struct ib_uverbs_ex_create_cq_resp), true, create_cq},
	[IB_USER_VERBS_EX_CMD_CREATE_QP] = {offsetofend(struct ib_uverbs_ex_create_qp, comp_mask),
		sizeof(struct ib_uverbs_ex_create_qp_resp), true, create_qp},
	[IB_USER_VERBS_EX_CMD_MODIFY_QP] = {sizeof(struct ib_uverbs_modify_qp), 0, true, modify_qp},
	[IB_USER_VERBS_EX_CMD_MODIFY_CQ] = {sizeof(struct ib_uverbs_ex_modify_cq), 0, false, modify_cq},
};
const unsigned uverbs_write_ex_methods_len = COUNT(uverbs_write_ex_methods);
