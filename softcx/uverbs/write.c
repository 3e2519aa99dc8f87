/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

#define IN(cmd, var) uverbs_udata_in(&(cmd)->core, &(var), sizeof(var), sizeof(var))

/* ---- context and device ----------------------------------------------------------------- */

int uverbs_context_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_udata *drv)
{
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	struct mlx5_ib_alloc_ucontext_resp resp;
	int r;

	if (file->has_context)
		return -EINVAL;
	r = uverbs_udata_in(
		drv, &req, offsetof(struct mlx5_ib_alloc_ucontext_req_v2, max_cqe_version), sizeof(req));
	if (r < 0)
		return r;
	if (req.flags & ~(uint32_t)MLX5_IB_ALLOC_UCTX_DEVX)
		return -EOPNOTSUPP;
	if (req.comp_mask || req.reserved0 || req.reserved1 || req.reserved2)
		return -EOPNOTSUPP;
	if ((req.flags & MLX5_IB_ALLOC_UCTX_DEVX) && !hw_fact(file->dev, PROFILE_DEVX))
		return -EINVAL;
	if (!(req.lib_caps & MLX5_LIB_CAP_DYN_UAR)) /* rdma-core before 28: static UARs */
		return -EOPNOTSUPP;
	uverbs_caps_ucontext(file->dev, &resp, drv->out_len);
	r = uverbs_udata_out(drv, call, &resp, sizeof(resp));
	if (r < 0)
		return r;
	file->has_context = true;
	file->devx = req.flags & MLX5_IB_ALLOC_UCTX_DEVX;
	return 0;
}

static int get_context(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	const uint32_t vectors = UVERBS_COMP_VECTORS;
	struct uverbs_channel *ch;
	int r, fd;

	r = uverbs_context_create(file, call, &cmd->drv);
	if (r < 0)
		return r;
	r = uverbs_channel_new(file, UVERBS_CH_ASYNC, &fd, &ch);
	if (r == 0)
		r = nic_call_store(call,
			uverbs_udata_at(
				&cmd->core, offsetof(struct ib_uverbs_get_context_resp, num_comp_vectors)),
			&vectors, sizeof(vectors));
	if (r == 0)
		r = nic_call_fd(call,
			uverbs_udata_at(&cmd->core, offsetof(struct ib_uverbs_get_context_resp, async_fd)),
			fd);
	if (r < 0) {
		file->has_context = false;
		return r;
	}
	file->async = uverbs_channel_get(ch);
	return 0;
}

static int write_query_device(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_query_device_resp resp;

	uverbs_caps_device(file->dev, file->index, &resp);
	return uverbs_udata_out(&cmd->core, call, &resp.base, sizeof(resp.base));
}

static int query_port(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_query_port_resp_ex resp;
	struct ib_uverbs_query_port req;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_caps_port(file->dev, req.port_num, &resp);
	if (r < 0)
		return r;
	return uverbs_udata_out(&cmd->core, call, &resp.legacy_resp, sizeof(resp.legacy_resp));
}

/* ---- protection domains, memory regions, address handles -------------------------------- */

static int destroy_handle(struct uverbs_file *file, enum uverbs_type type, uint32_t handle)
{
	struct uverbs_obj *obj;
	int r = uverbs_obj_find(file, type, handle, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

static int alloc_pd(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct uverbs_pd *pd;
	int r = uverbs_pd_create(file, &pd);

	if (r < 0)
		return r;
	const struct ib_uverbs_alloc_pd_resp resp = {.pd_handle = pd->obj.handle};
	const struct mlx5_ib_alloc_pd_resp drv = {.pdn = pd->pdn};
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv, sizeof(drv));
}

static int dealloc_pd(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_dealloc_pd req;
	int r = IN(cmd, req);

	(void)call;
	return r < 0 ? r : destroy_handle(file, UVERBS_PD, req.pd_handle);
}

static int reg_mr(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_reg_mr req;
	struct uverbs_mr *mr;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_mr_create(file, call, &req, &mr);
	if (r)
		return r;
	const struct ib_uverbs_reg_mr_resp resp = {
		.mr_handle = mr->obj.handle, .lkey = mr->key, .rkey = mr->key};
	return uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int rereg_mr(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_rereg_mr req;
	struct uverbs_mr *mr;
	int r = IN(cmd, req);

	if (r == 0 && uverbs_mr_find(file, req.mr_handle, &mr) < 0)
		r = -EINVAL;
	if (r == 0)
		r = uverbs_mr_rereg(mr, call, &req);
	if (r)
		return r;
	const struct ib_uverbs_rereg_mr_resp resp = {.lkey = mr->key, .rkey = mr->key};
	return uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int dereg_mr(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_dereg_mr req;
	int r = IN(cmd, req);

	(void)call;
	return r < 0 ? r : destroy_handle(file, UVERBS_MR, req.mr_handle);
}

static int create_ah(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct mlx5_ib_create_ah_resp drv = {0};
	struct ib_uverbs_create_ah_resp resp = {0};
	struct ib_uverbs_create_ah req;
	struct uverbs_obj *ah;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_ah_create(file, &req, drv.dmac, &ah);
	if (r < 0)
		return r;
	resp.ah_handle = ah->handle;
	drv.response_length = sizeof(drv);
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv, sizeof(drv));
}

static int alloc_mw(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_alloc_mw req;
	struct uverbs_mw *mw;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_mw_create(file, req.pd_handle, req.mw_type, &mw);
	if (r < 0)
		return r;
	const struct ib_uverbs_alloc_mw_resp resp = {.mw_handle = mw->obj.handle, .rkey = mw->key};
	return uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int dealloc_mw(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_dealloc_mw req;
	int r = IN(cmd, req);

	(void)call;
	return r < 0 ? r : destroy_handle(file, UVERBS_MW, req.mw_handle);
}

static int destroy_ah(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_destroy_ah req;
	int r = IN(cmd, req);

	(void)call;
	return r < 0 ? r : destroy_handle(file, UVERBS_AH, req.ah_handle);
}

/* ---- completion channels and queues ----------------------------------------------------- */

static int create_comp_channel(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct uverbs_channel *ch;
	int fd, r = uverbs_channel_new(file, UVERBS_CH_COMP, &fd, &ch);

	if (r < 0)
		return r;
	return nic_call_fd(call,
		uverbs_udata_at(&cmd->core, offsetof(struct ib_uverbs_create_comp_channel_resp, fd)), fd);
}

/* CREATE_CQ; the answer of the plain command is the beginning, of @resp_len bytes, of the extended one's. */
static int write_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd,
	const struct ib_uverbs_ex_create_cq *req, size_t resp_len)
{
	struct uverbs_cq_req want = {
		.user_handle = req->user_handle,
		.cqe = req->cqe,
		.comp_vector = req->comp_vector,
		.flags = req->flags,
		.async = file->async,
	};
	struct mlx5_ib_create_cq drv;
	struct uverbs_cq *cq;
	int r = uverbs_udata_in(
		&cmd->drv, &drv, offsetof(struct mlx5_ib_create_cq, cqe_comp_en), sizeof(drv));

	if (r == 0 && req->comp_channel >= 0)
		r = uverbs_channel_find(file, call, req->comp_channel, UVERBS_CH_COMP, &want.comp);
	if (r == 0)
		r = uverbs_cq_create(file, call, &want, &drv, &cq);
	if (r)
		return r;
	const struct ib_uverbs_ex_create_cq_resp resp = {
		.base = {.cq_handle = cq->obj.handle, .cqe = cq->cqe},
		.response_length = sizeof(resp),
	};
	const struct mlx5_ib_create_cq_resp drv_resp = {.cqn = hw_cqn(cq->hw)};
	r = uverbs_udata_out(&cmd->core, call, &resp, resp_len);
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv_resp, sizeof(drv_resp));
}

static int write_create_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_create_cq req;
	int r = IN(cmd, req);

	if (r)
		return r;
	const struct ib_uverbs_ex_create_cq ex = {
		.user_handle = req.user_handle,
		.cqe = req.cqe,
		.comp_vector = req.comp_vector,
		.comp_channel = req.comp_channel,
	};
	return write_cq(file, call, cmd, &ex, sizeof(struct ib_uverbs_create_cq_resp));
}

static int resize_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_resize_cq req;
	struct mlx5_ib_resize_cq drv;
	struct uverbs_cq *cq;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_udata_in(&cmd->drv, &drv, sizeof(drv), sizeof(drv));
	if (r == 0 && uverbs_cq_find(file, req.cq_handle, &cq) < 0)
		r = -EINVAL;
	if (r == 0)
		r = uverbs_cq_resize(cq, call, req.cqe, &drv);
	if (r)
		return r;
	const struct ib_uverbs_resize_cq_resp resp = {.cqe = cq->cqe};
	return uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int destroy_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq req;
	struct uverbs_cq *cq;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_cq_find(file, req.cq_handle, &cq);
	if (r == 0)
		r = uverbs_cq_destroy(cq, &resp);
	return r < 0 ? r : uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

/* ---- queue pairs ------------------------------------------------------------------------ */

static int write_create_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_create_qp req;
	struct mlx5_ib_create_qp drv;
	struct uverbs_qp *qp;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_udata_in(&cmd->drv, &drv, offsetof(struct mlx5_ib_create_qp, uidx), sizeof(drv));
	if (r < 0)
		return r;
	const struct ib_uverbs_ex_create_qp want = {
		.user_handle = req.user_handle,
		.pd_handle = req.pd_handle,
		.send_cq_handle = req.send_cq_handle,
		.recv_cq_handle = req.recv_cq_handle,
		.srq_handle = req.srq_handle,
		.max_send_wr = req.max_send_wr,
		.max_recv_wr = req.max_recv_wr,
		.max_send_sge = req.max_send_sge,
		.max_recv_sge = req.max_recv_sge,
		.max_inline_data = req.max_inline_data,
		.sq_sig_all = req.sq_sig_all,
		.qp_type = req.qp_type,
		.is_srq = req.is_srq,
	};
	r = uverbs_qp_create(file, call, &want, file->async, &drv, &qp);
	if (r)
		return r;
	const struct ib_uverbs_create_qp_resp resp = {
		.qp_handle = qp->obj.handle,
		.qpn = uverbs_qp_number(qp),
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline_data = qp->cap.max_inline_data,
	};
	const struct mlx5_ib_create_qp_resp drv_resp = {.bfreg_index = UINT32_MAX};
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv_resp, sizeof(drv_resp));
}

static int query_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_query_qp req;
	struct uverbs_qp *qp;
	int r = IN(cmd, req);

	if (r == 0 && uverbs_qp_find(file, req.qp_handle, &qp) < 0)
		r = -EINVAL;
	if (r < 0)
		return r;
	r = uverbs_qp_query(qp, &resp);
	return r < 0 ? r : uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int write_modify_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_modify_qp req;
	struct uverbs_qp *qp;
	int r = IN(cmd, req);

	(void)call;
	if (r == 0 && uverbs_qp_find(file, req.qp_handle, &qp) < 0)
		r = -EINVAL;
	return r < 0 ? r : uverbs_qp_modify(qp, &req, NULL);
}

static int destroy_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_destroy_qp_resp resp = {0};
	struct ib_uverbs_destroy_qp req;
	struct uverbs_qp *qp;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_qp_find(file, req.qp_handle, &qp);
	if (r == 0)
		r = uverbs_qp_destroy(qp, &resp.events_reported);
	return r < 0 ? r : uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

/* ---- shared receive queues -------------------------------------------------------------- */

static int create_srq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_create_srq req;
	struct mlx5_ib_create_srq drv;
	struct uverbs_srq *srq;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_udata_in(&cmd->drv, &drv, offsetof(struct mlx5_ib_create_srq, uidx), sizeof(drv));
	if (r == 0)
		r = uverbs_srq_create(file, call, &req, file->async, &drv, &srq);
	if (r)
		return r;
	const struct ib_uverbs_create_srq_resp resp = {
		.srq_handle = srq->obj.handle,
		.max_wr = srq->max_wr,
		.max_sge = srq->max_sge,
	};
	const struct mlx5_ib_create_srq_resp drv_resp = {.srqn = hw_srqn(srq->hw)};
	r = uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
	return r < 0 ? r : uverbs_udata_out(&cmd->drv, call, &drv_resp, sizeof(drv_resp));
}

static int modify_srq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_modify_srq req;
	struct uverbs_srq *srq;
	int r = IN(cmd, req);

	(void)call;
	if (r == 0 && uverbs_srq_find(file, req.srq_handle, &srq) < 0)
		r = -EINVAL;
	return r < 0 ? r : uverbs_srq_modify(srq, req.attr_mask, req.srq_limit);
}

static int query_srq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_query_srq req;
	struct uverbs_srq *srq;
	int r = IN(cmd, req);

	if (r == 0 && uverbs_srq_find(file, req.srq_handle, &srq) < 0)
		r = -EINVAL;
	if (r < 0)
		return r;
	const struct ib_uverbs_query_srq_resp resp = {
		.max_wr = srq->max_wr,
		.max_sge = srq->max_sge,
		.srq_limit = srq->limit,
	};
	return uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

static int destroy_srq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_destroy_srq_resp resp = {0};
	struct ib_uverbs_destroy_srq req;
	struct uverbs_srq *srq;
	int r = IN(cmd, req);

	if (r == 0)
		r = uverbs_srq_find(file, req.srq_handle, &srq);
	if (r == 0)
		r = uverbs_srq_destroy(srq, &resp.events_reported);
	return r < 0 ? r : uverbs_udata_out(&cmd->core, call, &resp, sizeof(resp));
}

#define IO(type, fn)                                                                                         \
	{                                                                                                    \
		sizeof(struct ib_uverbs_##type), sizeof(struct ib_uverbs_##type##_resp), true, fn            \
	}
#define I(type, fn)                                                                                          \
	{                                                                                                    \
		sizeof(struct ib_uverbs_##type), 0, false, fn                                                \
	}

/* Holes answer EOPNOTSUPP: polling and posting through the kernel, XRC, multicast. */
static const struct uverbs_method write_methods[] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] = IO(get_context, get_context),
	[IB_USER_VERBS_CMD_QUERY_DEVICE] = IO(query_device, write_query_device),
	[IB_USER_VERBS_CMD_QUERY_PORT] = IO(query_port, query_port),
	[IB_USER_VERBS_CMD_ALLOC_PD] = IO(alloc_pd, alloc_pd),
	[IB_USER_VERBS_CMD_DEALLOC_PD] = I(dealloc_pd, dealloc_pd),
	[IB_USER_VERBS_CMD_CREATE_AH] = IO(create_ah, create_ah),
	[IB_USER_VERBS_CMD_DESTROY_AH] = I(destroy_ah, destroy_ah),
	[IB_USER_VERBS_CMD_REG_MR] = IO(reg_mr, reg_mr),
	[IB_USER_VERBS_CMD_REREG_MR] = IO(rereg_mr, rereg_mr),
	[IB_USER_VERBS_CMD_DEREG_MR] = I(dereg_mr, dereg_mr),
	[IB_USER_VERBS_CMD_ALLOC_MW] = IO(alloc_mw, alloc_mw),
	[IB_USER_VERBS_CMD_DEALLOC_MW] = I(dealloc_mw, dealloc_mw),
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] = IO(create_comp_channel, create_comp_channel),
	[IB_USER_VERBS_CMD_CREATE_CQ] = IO(create_cq, write_create_cq),
	[IB_USER_VERBS_CMD_RESIZE_CQ] = IO(resize_cq, resize_cq),
	[IB_USER_VERBS_CMD_DESTROY_CQ] = IO(destroy_cq, destroy_cq),
	[IB_USER_VERBS_CMD_CREATE_QP] = IO(create_qp, write_create_qp),
	[IB_USER_VERBS_CMD_QUERY_QP] = IO(query_qp, query_qp),
	[IB_USER_VERBS_CMD_MODIFY_QP] = I(modify_qp, write_modify_qp),
	[IB_USER_VERBS_CMD_DESTROY_QP] = IO(destroy_qp, destroy_qp),
	[IB_USER_VERBS_CMD_CREATE_SRQ] = IO(create_srq, create_srq),
	[IB_USER_VERBS_CMD_MODIFY_SRQ] = I(modify_srq, modify_srq),
	[IB_USER_VERBS_CMD_QUERY_SRQ] = IO(query_srq, query_srq),
	[IB_USER_VERBS_CMD_DESTROY_SRQ] = IO(destroy_srq, destroy_srq),
	[IB_USER_VERBS_CMD_OPEN_QP] = {0},
};

#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

static int write_ex_query_device(
	struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
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

static int write_ex_create_cq(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_create_cq req;
	int r = uverbs_udata_in(&cmd->core, &req, sizeof(req), sizeof(req));

	if (r == 0 && (req.comp_mask || req.reserved))
		r = -EINVAL;
	return r ? r : write_cq(file, call, cmd, &req, sizeof(struct ib_uverbs_ex_create_cq_resp));
}

static int write_ex_create_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
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

static int write_ex_modify_qp(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cmd *cmd)
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
static const struct uverbs_method write_ex_methods[] = {
	[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] = {sizeof(struct ib_uverbs_ex_query_device),
		offsetofend(struct ib_uverbs_ex_query_device_resp, response_length), true,
		write_ex_query_device},
	[IB_USER_VERBS_EX_CMD_CREATE_CQ] = {sizeof(struct ib_uverbs_ex_create_cq),
		sizeof(struct ib_uverbs_ex_create_cq_resp), true, write_ex_create_cq},
	[IB_USER_VERBS_EX_CMD_CREATE_QP] = {offsetofend(struct ib_uverbs_ex_create_qp, comp_mask),
		sizeof(struct ib_uverbs_ex_create_qp_resp), true, write_ex_create_qp},
	[IB_USER_VERBS_EX_CMD_MODIFY_QP] = {sizeof(struct ib_uverbs_modify_qp), 0, true, write_ex_modify_qp},
	[IB_USER_VERBS_EX_CMD_MODIFY_CQ] = {sizeof(struct ib_uverbs_ex_modify_cq), 0, false, modify_cq},
};

int uverbs_method_find(uint32_t command, const struct uverbs_method **method)
{
	uint32_t i = command & IB_USER_VERBS_CMD_COMMAND_MASK;

	if (command & ~(uint32_t)(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	if (command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
		if (i >= COUNT(write_ex_methods) || !write_ex_methods[i].run)
			return -EOPNOTSUPP;
		*method = &write_ex_methods[i];
		return 0;
	}
	if (i >= COUNT(write_methods))
		return -EINVAL;
	if (!write_methods[i].run)
		return -EOPNOTSUPP;
	*method = &write_methods[i];
	return 0;
}

int uverbs_method_run(const struct uverbs_method *method, struct uverbs_file *file, struct nic_call *call,
	const struct uverbs_cmd *cmd)
{
	if (!file->has_context && method != &write_methods[IB_USER_VERBS_CMD_GET_CONTEXT])
		return -EINVAL;
	return method->run(file, call, cmd);
}

/* The command's lengths count 4-byte words from the header on; driver data follows the core structure. */
static int parse_legacy(const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *bytes, size_t len,
	const struct uverbs_method *m, struct uverbs_cmd *cmd)
{
	uint64_t response = 0;

	if (hdr->in_words * 4u != len || len < sizeof(*hdr) + m->req)
		return -EINVAL;
	if (hdr->out_words * 4u < m->resp)
		return -ENOSPC;
	cmd->core.in = bytes + sizeof(*hdr);
	cmd->core.in_len = m->req;
	cmd->drv.in = bytes + sizeof(*hdr) + m->req;
	cmd->drv.in_len = len - sizeof(*hdr) - m->req;
	if (m->responds) {
		memcpy(&response, cmd->core.in, sizeof(response));
		cmd->core.out = response;
		cmd->core.out_len = m->resp;
		cmd->drv.out = response + m->resp;
		cmd->drv.out_len = hdr->out_words * 4u - m->resp;
	}
	return 0;
}

/* Lengths count 8-byte words of the core and the driver part apart, without headers. */
static int parse_ex(const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *bytes, size_t len,
	const struct uverbs_method *m, struct uverbs_cmd *cmd)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t head = sizeof(*hdr) + sizeof(ex);

	if (len < head)
		return -EINVAL;
	memcpy(&ex, bytes + sizeof(*hdr), sizeof(ex));
	if ((hdr->in_words + ex.provider_in_words) * 8u != len - head || ex.cmd_hdr_reserved)
		return -EINVAL;
	if (hdr->in_words * 8u < m->req)
		return -ENOSPC;
	if (!ex.response && (hdr->out_words || ex.provider_out_words))
		return -EINVAL;
	if (ex.response && !hdr->out_words && !ex.provider_out_words)
		return -EINVAL;
	if (ex.response && hdr->out_words * 8u < m->resp)
		return -ENOSPC;
	cmd->core.in = bytes + head;
	cmd->core.in_len = hdr->in_words * 8u;
	cmd->core.out = ex.response;
	cmd->core.out_len = hdr->out_words * 8u;
	cmd->drv.in = bytes + head + cmd->core.in_len;
	cmd->drv.in_len = ex.provider_in_words * 8u;
	cmd->drv.out = ex.response + cmd->core.out_len;
	cmd->drv.out_len = ex.provider_out_words * 8u;
	return 0;
}

ssize_t uverbs_write(struct uverbs_file *file, struct nic_call *call)
{
	const struct uverbs_method *method;
	struct ib_uverbs_cmd_hdr hdr;
	struct uverbs_cmd cmd = {0};
	const uint8_t *bytes;
	size_t len;
	int r;

	bytes = nic_call_bytes(call, &len);
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, bytes, sizeof(hdr));
	r = uverbs_method_find(hdr.command, &method);
	if (r < 0)
		return r;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		r = parse_ex(&hdr, bytes, len, method, &cmd);
	else
		r = parse_legacy(&hdr, bytes, len, method, &cmd);
	if (r < 0)
		return r;
	r = uverbs_method_run(method, file, call, &cmd);
	return r == 0 ? (ssize_t)len : r;
}
