/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creation of queues and memory regions through ioctl: the only way for queues of a context imported from
 * another process, and for regions in an rdma-core without write().
 */
#include "softcx/uverbs/cq.h"
#include "softcx/uverbs/ioctl.h"
#include "softcx/uverbs/mr.h"
#include "softcx/uverbs/qp.h"
#include "softcx/uverbs/srq.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

/* The object's own event channel, or the file's. */
static int async_channel(const struct uverbs_bundle *b, uint16_t id, struct uverbs_channel **ch)
{
	*ch = b->file->async;
	if (!uverbs_attr(b, id))
		return 0;
	return uverbs_channel_find(b->file, b->call, (int64_t)uverbs_attr_value(b, id), UVERBS_CH_ASYNC, ch);
}

static int cq_create(struct uverbs_bundle *b)
{
	struct uverbs_udata drv = uverbs_attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
	struct uverbs_cq_req want = {
		.user_handle = uverbs_attr_value(b, UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
		.cqe = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.flags = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_CQ_FLAGS),
	};
	struct mlx5_ib_create_cq cmd;
	struct uverbs_cq *cq;
	int r = uverbs_udata_in(&drv, &cmd, offsetof(struct mlx5_ib_create_cq, cqe_comp_en), sizeof(cmd));

	if (r == 0)
		r = async_channel(b, UVERBS_ATTR_CREATE_CQ_EVENT_FD, &want.async);
	if (r == 0 && uverbs_attr(b, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL))
		r = uverbs_channel_find(b->file, b->call,
			(int64_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL), UVERBS_CH_COMP,
			&want.comp);
	if (r == 0)
		r = uverbs_cq_create(b->file, b->call, &want, &cmd, &cq);
	if (r)
		return r;
	const struct mlx5_ib_create_cq_resp resp = {.cqn = hw_cqn(cq->hw)};
	r = uverbs_attr_new_handle(b, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cq->cqe, sizeof(cq->cqe));
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static int qp_create(struct uverbs_bundle *b)
{
	struct uverbs_udata drv = uverbs_attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
	uint64_t type = uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_TYPE);
	uint64_t flags = uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_FLAGS);
	const struct mlx5_ib_create_qp_resp resp = {.bfreg_index = UINT32_MAX};
	struct ib_uverbs_qp_cap cap;
	struct mlx5_ib_create_qp cmd;
	struct uverbs_channel *async;
	struct uverbs_qp *qp;
	const void *cap_in;
	uint32_t qpn;
	size_t len;
	int r;

	/* The ioctl does not take the cross-channel flags that the write command takes: Linux
	 * core/uverbs_std_types_qp.c */
	if (flags & ~(uint64_t)(IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
				IB_UVERBS_QP_CREATE_SCATTER_FCS | IB_UVERBS_QP_CREATE_CVLAN_STRIPPING |
				IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING | IB_UVERBS_QP_CREATE_SQ_SIG_ALL))
		return -EINVAL;
	if (type > UINT8_MAX || !uverbs_attr(b, UVERBS_ATTR_CREATE_QP_PD_HANDLE) ||
		!uverbs_attr(b, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE) ||
		!uverbs_attr(b, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE))
		return -EINVAL;
	cap_in = uverbs_attr_bytes(b, UVERBS_ATTR_CREATE_QP_CAP, &len);
	memcpy(&cap, cap_in, sizeof(cap));
	const struct ib_uverbs_ex_create_qp want = {
		.user_handle = uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
		.pd_handle = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq_handle = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq_handle = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq_handle = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.max_send_wr = cap.max_send_wr,
		.max_recv_wr = cap.max_recv_wr,
		.max_send_sge = cap.max_send_sge,
		.max_recv_sge = cap.max_recv_sge,
		.max_inline_data = cap.max_inline_data,
		.sq_sig_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL ? 1 : 0,
		.create_flags = (uint32_t)(flags & ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL),
		.qp_type = (uint8_t)type,
		.is_srq = uverbs_attr(b, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE) ? 1 : 0,
	};
	r = uverbs_udata_in(&drv, &cmd, offsetof(struct mlx5_ib_create_qp, uidx), sizeof(cmd));
	if (r == 0)
		r = async_channel(b, UVERBS_ATTR_CREATE_QP_EVENT_FD, &async);
	if (r == 0)
		r = uverbs_qp_create(b->file, b->call, &want, async, &cmd, &qp);
	if (r)
		return r;
	qpn = uverbs_qp_number(qp);
	r = uverbs_attr_new_handle(b, UVERBS_ATTR_CREATE_QP_HANDLE, qp->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static int srq_create(struct uverbs_bundle *b)
{
	struct uverbs_udata drv = uverbs_attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
	const struct ib_uverbs_create_srq want = {
		.user_handle = uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
		.pd_handle = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
		.max_wr = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
		.srq_limit = (uint32_t)uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_LIMIT),
	};
	struct mlx5_ib_create_srq cmd;
	struct uverbs_channel *async;
	struct uverbs_srq *srq;
	int r;

	if (uverbs_attr_value(b, UVERBS_ATTR_CREATE_SRQ_TYPE) != IB_UVERBS_SRQT_BASIC)
		return -EOPNOTSUPP;
	r = uverbs_udata_in(&drv, &cmd, offsetof(struct mlx5_ib_create_srq, uidx), sizeof(cmd));
	if (r == 0)
		r = async_channel(b, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, &async);
	if (r == 0)
		r = uverbs_srq_create(b->file, b->call, &want, async, &cmd, &srq);
	if (r)
		return r;
	const struct mlx5_ib_create_srq_resp resp = {.srqn = hw_srqn(srq->hw)};
	r = uverbs_attr_new_handle(b, UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq->max_wr, sizeof(srq->max_wr));
	if (r == 0)
		r = uverbs_attr_out(
			b, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq->max_sge, sizeof(srq->max_sge));
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

/* As of Linux 6.17; the header of Debian 12 ends before them (enum uverbs_methods_mr,
 * uverbs_attrs_reg_mr_cmd_attr_ids). */
enum { METHOD_REG_MR = 5 };
enum {
	REG_MR_HANDLE,
	REG_MR_PD_HANDLE,
	REG_MR_DMA_HANDLE, /* not here: no device has steering tags */
	REG_MR_IOVA,
	REG_MR_ADDR,
	REG_MR_LENGTH,
	REG_MR_ACCESS_FLAGS,
	REG_MR_FD,
	REG_MR_FD_OFFSET,
	REG_MR_RESP_LKEY,
	REG_MR_RESP_RKEY,
};

static int mr_register(struct uverbs_bundle *b)
{
	const struct ib_uverbs_reg_mr want = {
		.start = uverbs_attr_value(b, REG_MR_ADDR),
		.length = uverbs_attr_value(b, REG_MR_LENGTH),
		.hca_va = uverbs_attr_value(b, REG_MR_IOVA),
		.pd_handle = (uint32_t)uverbs_attr_value(b, REG_MR_PD_HANDLE),
		.access_flags = (uint32_t)uverbs_attr_value(b, REG_MR_ACCESS_FLAGS),
	};
	struct uverbs_mr *mr;
	int r;

	if (uverbs_attr(b, REG_MR_FD)) /* a dma-buf */
		return uverbs_attr(b, REG_MR_ADDR) || !uverbs_attr(b, REG_MR_FD_OFFSET) ? -EINVAL
											: -EOPNOTSUPP;
	if (!uverbs_attr(b, REG_MR_ADDR) || uverbs_attr(b, REG_MR_FD_OFFSET))
		return -EINVAL;
	r = uverbs_mr_create(b->file, b->call, &want, &mr);
	if (r)
		return r;
	r = uverbs_attr_new_handle(b, REG_MR_HANDLE, mr->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, REG_MR_RESP_LKEY, &mr->key, sizeof(mr->key));
	return r < 0 ? r : uverbs_attr_out(b, REG_MR_RESP_RKEY, &mr->key, sizeof(mr->key));
}

const struct uverbs_ioctl_method uverbs_create_methods[] = {
	{UVERBS_OBJECT_MR, METHOD_REG_MR, false, mr_register,
		{UVERBS_NEW(REG_MR_HANDLE), UVERBS_HANDLE(REG_MR_PD_HANDLE), UVERBS_VALUE(REG_MR_IOVA),
			UVERBS_MAYBE_VALUE(REG_MR_ADDR), UVERBS_VALUE(REG_MR_LENGTH),
			UVERBS_MAYBE_VALUE(REG_MR_ACCESS_FLAGS), UVERBS_MAYBE_FD(REG_MR_FD),
			UVERBS_MAYBE_VALUE(REG_MR_FD_OFFSET), UVERBS_OUT(REG_MR_RESP_LKEY, 4),
			UVERBS_OUT(REG_MR_RESP_RKEY, 4), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, false, cq_create,
		{UVERBS_NEW(UVERBS_ATTR_CREATE_CQ_HANDLE), UVERBS_VALUE(UVERBS_ATTR_CREATE_CQ_CQE),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
			UVERBS_MAYBE_FD(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
			UVERBS_MAYBE_VALUE(UVERBS_ATTR_CREATE_CQ_FLAGS),
			UVERBS_OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4),
			UVERBS_MAYBE_FD(UVERBS_ATTR_CREATE_CQ_EVENT_FD), UVERBS_ATTR_UHW, UVERBS_ATTR_END}},
	{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, false, qp_create,
		{UVERBS_NEW(UVERBS_ATTR_CREATE_QP_HANDLE),
			UVERBS_MAYBE_HANDLE(UVERBS_ATTR_CREATE_QP_PD_HANDLE),
			UVERBS_MAYBE_HANDLE(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
			UVERBS_MAYBE_HANDLE(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
			UVERBS_MAYBE_HANDLE(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_QP_USER_HANDLE),
			UVERBS_IN(UVERBS_ATTR_CREATE_QP_CAP, sizeof(struct ib_uverbs_qp_cap)),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_QP_TYPE),
			UVERBS_MAYBE_VALUE(UVERBS_ATTR_CREATE_QP_FLAGS),
			UVERBS_MAYBE_FD(UVERBS_ATTR_CREATE_QP_EVENT_FD),
			UVERBS_OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(struct ib_uverbs_qp_cap)),
			UVERBS_OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4), UVERBS_ATTR_UHW, UVERBS_ATTR_END}},
	{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, false, srq_create,
		{UVERBS_NEW(UVERBS_ATTR_CREATE_SRQ_HANDLE), UVERBS_HANDLE(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_SRQ_MAX_WR),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
			UVERBS_VALUE(UVERBS_ATTR_CREATE_SRQ_LIMIT), UVERBS_VALUE(UVERBS_ATTR_CREATE_SRQ_TYPE),
			UVERBS_MAYBE_FD(UVERBS_ATTR_CREATE_SRQ_EVENT_FD),
			UVERBS_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4),
			UVERBS_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4), UVERBS_ATTR_UHW,
			UVERBS_ATTR_END}},
};
const unsigned uverbs_create_methods_len = COUNT(uverbs_create_methods);
