/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stddef.h>
#include <string.h>

const struct ib_uverbs_attr *uverbs_attr(const struct uverbs_bundle *b, uint16_t id)
{
	for (unsigned i = 0; i < b->num; i++)
		if (b->attrs[i].attr_id == id)
			return &b->attrs[i];
	return NULL;
}

uint64_t uverbs_attr_value(const struct uverbs_bundle *b, uint16_t id)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);

	if (!a)
		return 0;
	return a->len == 4 ? (uint32_t)a->data : a->data;
}

const void *uverbs_attr_bytes(const struct uverbs_bundle *b, uint16_t id, size_t *len)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);

	*len = a ? a->len : 0;
	if (*len == 0)
		return NULL;
	if (*len <= sizeof(a->data))
		return &a->data;
	return nic_call_attr(b->call, (unsigned)(a - b->attrs));
}

/* Address in the application of byte @off of the attribute itself. */
static uint64_t attr_va(const struct uverbs_bundle *b, const struct ib_uverbs_attr *a, size_t off)
{
	return nic_call_va(b->call) + offsetof(struct ib_uverbs_ioctl_hdr, attrs) +
	       (uint64_t)(a - b->attrs) * sizeof(*a) + off;
}

int uverbs_attr_out(const struct uverbs_bundle *b, uint16_t id, const void *src, size_t len)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint16_t flags;
	int r;

	if (!a)
		return 0;
	r = nic_call_store(b->call, a->data, src, len < a->len ? len : a->len);
	if (r < 0)
		return r;
	flags = a->flags | UVERBS_ATTR_F_VALID_OUTPUT;
	return nic_call_store(
		b->call, attr_va(b, a, offsetof(struct ib_uverbs_attr, flags)), &flags, sizeof(flags));
}

int uverbs_attr_new_handle(const struct uverbs_bundle *b, uint16_t id, uint32_t handle)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint64_t data = handle;

	return nic_call_store(
		b->call, attr_va(b, a, offsetof(struct ib_uverbs_attr, data)), &data, sizeof(data));
}

int uverbs_attr_new_fd(const struct uverbs_bundle *b, uint16_t id, int fd)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, id);
	uint64_t va = attr_va(b, a, offsetof(struct ib_uverbs_attr, data));
	uint32_t high = 0;
	int r = nic_call_store(b->call, va + 4, &high, sizeof(high)); /* data is 64 bits wide */

	return r < 0 ? r : nic_call_fd(b->call, va, fd);
}

int uverbs_attr_obj(
	const struct uverbs_bundle *b, uint16_t id, enum uverbs_type type, struct uverbs_obj **obj)
{
	return uverbs_obj_find(b->file, type, uverbs_attr_value(b, id), obj);
}

/* The pair of input and output attributes as command data. */
static struct uverbs_udata attr_udata(const struct uverbs_bundle *b, uint16_t in, uint16_t out)
{
	const struct ib_uverbs_attr *o = uverbs_attr(b, out);
	struct uverbs_udata u = {0};

	u.in = uverbs_attr_bytes(b, in, &u.in_len);
	if (o) {
		u.out = o->data;
		u.out_len = o->len;
	}
	return u;
}

/* ---- dispatch --------------------------------------------------------------------------- */

/* ---- creation: the only way for queues of a context imported from another process, and for
 * regions in an rdma-core without write() ------------------------------------------------- */

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
	struct uverbs_udata drv = attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
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
	struct uverbs_udata drv = attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
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
	struct uverbs_udata drv = attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
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

/* ---- device ----------------------------------------------------------------------------- */

static int invoke_write(struct uverbs_bundle *b)
{
	const struct uverbs_cmd cmd = {
		.core = attr_udata(b, UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT),
		.drv = attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT),
	};
	const struct uverbs_method *method;
	uint64_t command = uverbs_attr_value(b, UVERBS_ATTR_WRITE_CMD);
	int r = command > UINT32_MAX ? -EINVAL : uverbs_method_find((uint32_t)command, &method);

	if (r < 0)
		return r;
	if (cmd.core.in_len < method->req || cmd.core.out_len < method->resp)
		return -ENOSPC;
	return uverbs_method_run(method, b->file, b->call, &cmd);
}

static int out_context_info(struct uverbs_bundle *b, uint16_t vectors_id, uint16_t support_id)
{
	const uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	const uint32_t vectors = UVERBS_COMP_VECTORS;
	int r = uverbs_attr_out(b, vectors_id, &vectors, sizeof(vectors));

	return r < 0 ? r : uverbs_attr_out(b, support_id, &support, sizeof(support));
}

static int get_context(struct uverbs_bundle *b)
{
	struct uverbs_udata drv = attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
	int r;

	r = uverbs_context_create(b->file, b->call, &drv);
	if (r < 0)
		return r;
	return out_context_info(
		b, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT);
}

static int query_context(struct uverbs_bundle *b)
{
	const struct ib_uverbs_attr *a = uverbs_attr(b, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
	struct mlx5_ib_alloc_ucontext_resp resp;
	int r;

	uverbs_caps_ucontext(b->file->dev, &resp, a ? a->len : 0);
	r = uverbs_attr_out(b, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &resp, sizeof(resp));
	if (r < 0)
		return r;
	return out_context_info(
		b, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT);
}

static int query_port(struct uverbs_bundle *b)
{
	uint64_t port = uverbs_attr_value(b, UVERBS_ATTR_QUERY_PORT_PORT_NUM);
	struct ib_uverbs_query_port_resp_ex resp;
	int r = port > UINT8_MAX ? -EINVAL : uverbs_caps_port(b->file->dev, (uint32_t)port, &resp);

	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
}

static int query_gid_entry(struct uverbs_bundle *b)
{
	uint64_t index = uverbs_attr_value(b, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry entry;

	if (uverbs_attr_value(b, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) ||
		uverbs_attr_value(b, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != 1 || index >= UVERBS_GID_TABLE)
		return -EINVAL;
	if (!uverbs_caps_gid(b->file->dev, (uint32_t)index, &entry))
		return -ENODATA;
	return uverbs_attr_out(b, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof(entry));
}

static int query_gid_table(struct uverbs_bundle *b)
{
	uint64_t size = uverbs_attr_value(b, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	const struct ib_uverbs_attr *a = uverbs_attr(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	struct ib_uverbs_gid_entry entry;
	uint64_t n = 0;
	int r;

	if (uverbs_attr_value(b, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) || size == 0 || size > UINT16_MAX)
		return -EINVAL;
	if (uverbs_caps_gid(b->file->dev, (uint32_t)(a->len / size), &entry))
		return -EINVAL;
	for (; uverbs_caps_gid(b->file->dev, (uint32_t)n, &entry); n++) {
		r = nic_call_store(
			b->call, a->data + n * size, &entry, size < sizeof(entry) ? size : sizeof(entry));
		if (r < 0)
			return r;
	}
	return uverbs_attr_out(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &n, sizeof(n));
}

static int async_event_alloc(struct uverbs_bundle *b)
{
	struct uverbs_channel *ch;
	int fd, r = uverbs_channel_new(b->file, UVERBS_CH_ASYNC, &fd, &ch);

	if (r < 0)
		return r;
	if (!b->file->async)
		b->file->async = uverbs_channel_get(ch);
	return uverbs_attr_new_fd(b, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
}

/* How the ioctl interface names what the table has; 0: it has no such objects. */
static enum uverbs_type type_of(uint64_t object)
{
	static const struct {
		uint16_t object;
		enum uverbs_type type;
	} known[] = {
		{UVERBS_OBJECT_PD, UVERBS_PD},
		{UVERBS_OBJECT_MR, UVERBS_MR},
		{UVERBS_OBJECT_CQ, UVERBS_CQ},
		{UVERBS_OBJECT_QP, UVERBS_QP},
		{UVERBS_OBJECT_SRQ, UVERBS_SRQ},
		{UVERBS_OBJECT_AH, UVERBS_AH},
		{UVERBS_OBJECT_MW, UVERBS_MW},
		{MLX5_IB_OBJECT_UAR, UVERBS_UAR},
		{MLX5_IB_OBJECT_DEVX_UMEM, UVERBS_UMEM},
		{MLX5_IB_OBJECT_DEVX_OBJ, UVERBS_DEVX},
	};

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].object == object)
			return known[i].type;
	return 0;
}

/*
 * Linux core/uverbs_std_types_device.c, gather_objects_handle: newest first, as many as there is room for. An
 * object id is a constant, 8 bytes long, and the total is a u32 (uverbs_ioctl.c takes no other length). Of an
 * object that nobody knows there are none: uapi_get_object returns an ERR_PTR, which the caller does not
 * check.
 */
static int info_handles(struct uverbs_bundle *b)
{
	static uint32_t handles[UINT16_MAX / sizeof(uint32_t)]; /* one thread */
	const struct ib_uverbs_attr *list = uverbs_attr(b, UVERBS_ATTR_INFO_HANDLES_LIST);
	const struct ib_uverbs_attr *id = uverbs_attr(b, UVERBS_ATTR_INFO_OBJECT_ID);
	const struct ib_uverbs_attr *total = uverbs_attr(b, UVERBS_ATTR_INFO_TOTAL_HANDLES);
	enum uverbs_type type = type_of(id->data);
	const struct uverbs_obj *obj;
	uint32_t n = 0;
	int r;

	if (!list || !list->len || list->len % sizeof(handles[0]) || id->len != sizeof(uint64_t) ||
		(total && total->len != sizeof(n)))
		return -EINVAL;
	LIST_FOREACH (obj, &b->file->live, in_file)
		if (obj->type == type && n < list->len / sizeof(handles[0]))
			handles[n++] = obj->handle;
	r = uverbs_attr_out(b, UVERBS_ATTR_INFO_HANDLES_LIST, handles, n * sizeof(handles[0]));
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_INFO_TOTAL_HANDLES, &n, sizeof(n));
}

/* ---- objects ---------------------------------------------------------------------------- */

static int destroy(struct uverbs_bundle *b, uint16_t id, enum uverbs_type type)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, id, type, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

static int pd_destroy(struct uverbs_bundle *b)
{
	return destroy(b, UVERBS_ATTR_DESTROY_PD_HANDLE, UVERBS_PD);
}

static int mr_destroy(struct uverbs_bundle *b)
{
	return destroy(b, UVERBS_ATTR_DESTROY_MR_HANDLE, UVERBS_MR);
}

static int ah_destroy(struct uverbs_bundle *b)
{
	return destroy(b, UVERBS_ATTR_DESTROY_AH_HANDLE, UVERBS_AH);
}

static int mw_destroy(struct uverbs_bundle *b)
{
	return destroy(b, UVERBS_ATTR_DESTROY_MW_HANDLE, UVERBS_MW);
}

static int mr_query(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	const struct uverbs_mr *mr;
	int r = uverbs_attr_obj(b, UVERBS_ATTR_QUERY_MR_HANDLE, UVERBS_MR, &obj);

	if (r < 0)
		return r;
	mr = (struct uverbs_mr *)obj;
	r = uverbs_attr_out(b, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->key, sizeof(mr->key));
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->key, sizeof(mr->key));
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->len, sizeof(mr->len));
	if (r == 0)
		r = uverbs_attr_out(b, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova, sizeof(mr->iova));
	return r;
}

static int mr_advise(struct uverbs_bundle *b)
{
	(void)b; /* advice is about on-demand paging */
	return -EOPNOTSUPP;
}

static int cq_destroy(struct uverbs_bundle *b)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_CQ, &obj);

	if (r == 0)
		r = uverbs_cq_destroy((struct uverbs_cq *)obj, &resp);
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
}

static int qp_destroy(struct uverbs_bundle *b)
{
	struct ib_uverbs_destroy_qp_resp resp = {0};
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_QP, &obj);

	if (r == 0)
		r = uverbs_qp_destroy((struct uverbs_qp *)obj, &resp.events_reported);
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
}

static int srq_destroy(struct uverbs_bundle *b)
{
	struct ib_uverbs_destroy_srq_resp resp = {0};
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, UVERBS_ATTR_DESTROY_SRQ_HANDLE, UVERBS_SRQ, &obj);

	if (r == 0)
		r = uverbs_srq_destroy((struct uverbs_srq *)obj, &resp.events_reported);
	return r < 0 ? r : uverbs_attr_out(b, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
}

static const struct uverbs_ioctl_method core_methods[] = {
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
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, true, invoke_write,
		{
			UVERBS_VALUE(UVERBS_ATTR_WRITE_CMD),
			UVERBS_MAYBE_IN(UVERBS_ATTR_CORE_IN, 4),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_CORE_OUT, 0),
			UVERBS_ATTR_UHW,
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, true, get_context,
		{
			UVERBS_MAYBE_OUT(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8),
			UVERBS_ATTR_UHW,
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, false, query_context,
		{
			UVERBS_MAYBE_OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8),
			UVERBS_OUT(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 4),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, false, info_handles,
		{
			UVERBS_VALUE(UVERBS_ATTR_INFO_OBJECT_ID),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_INFO_HANDLES_LIST, 4),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, false, query_port,
		{
			UVERBS_VALUE(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
			UVERBS_OUT(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp)),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, false, query_gid_entry,
		{
			UVERBS_VALUE(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
			UVERBS_VALUE(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
			UVERBS_MAYBE_VALUE(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS),
			UVERBS_OUT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 16),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, false, query_gid_table,
		{
			UVERBS_VALUE(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
			UVERBS_MAYBE_VALUE(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
			UVERBS_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0),
			UVERBS_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, false, async_event_alloc,
		{UVERBS_NEW(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, false, pd_destroy,
		{UVERBS_HANDLE(UVERBS_ATTR_DESTROY_PD_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, false, mw_destroy,
		{UVERBS_HANDLE(UVERBS_ATTR_DESTROY_MW_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, false, ah_destroy,
		{UVERBS_HANDLE(UVERBS_ATTR_DESTROY_AH_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, false, mr_destroy,
		{UVERBS_HANDLE(UVERBS_ATTR_DESTROY_MR_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, false, mr_query,
		{
			UVERBS_HANDLE(UVERBS_ATTR_QUERY_MR_HANDLE),
			UVERBS_OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4),
			UVERBS_OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4),
			UVERBS_OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8),
			UVERBS_MAYBE_OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, false, mr_advise,
		{
			UVERBS_HANDLE(UVERBS_ATTR_ADVISE_MR_PD_HANDLE),
			UVERBS_VALUE(UVERBS_ATTR_ADVISE_MR_ADVICE),
			UVERBS_VALUE(UVERBS_ATTR_ADVISE_MR_FLAGS),
			UVERBS_IN(UVERBS_ATTR_ADVISE_MR_SGE_LIST, 1),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, false, cq_destroy,
		{
			UVERBS_HANDLE(UVERBS_ATTR_DESTROY_CQ_HANDLE),
			UVERBS_OUT(UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp)),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, false, qp_destroy,
		{
			UVERBS_HANDLE(UVERBS_ATTR_DESTROY_QP_HANDLE),
			UVERBS_OUT(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp)),
			UVERBS_ATTR_END,
		}},
	{UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, false, srq_destroy,
		{
			UVERBS_HANDLE(UVERBS_ATTR_DESTROY_SRQ_HANDLE),
			UVERBS_OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(struct ib_uverbs_destroy_srq_resp)),
			UVERBS_ATTR_END,
		}},
};

/* ---- access to attributes --------------------------------------------------------------- */

static const struct uverbs_ioctl_method *find_in(
	const struct uverbs_ioctl_method *m, unsigned len, uint16_t object, uint16_t method)
{
	for (unsigned i = 0; i < len; i++)
		if (m[i].object == object && m[i].method == method)
			return &m[i];
	return NULL;
}

static const struct uverbs_ioctl_method *find_method(uint16_t object, uint16_t method)
{
	const struct uverbs_ioctl_method *m = find_in(core_methods, COUNT(core_methods), object, method);

	return m ? m : find_in(uverbs_mlx5_methods, uverbs_mlx5_methods_len, object, method);
}

static const struct uverbs_attr_spec *find_spec(const struct uverbs_ioctl_method *m, uint16_t id)
{
	for (unsigned i = 0; m->attrs[i].id != 0xffff; i++)
		if (m->attrs[i].id == id)
			return &m->attrs[i];
	return NULL;
}

static int check_attr(
	const struct uverbs_bundle *b, const struct ib_uverbs_attr *a, const struct uverbs_attr_spec *s)
{
	if (a->attr_data.reserved)
		return -EINVAL;
	switch (s->kind) {
	case UVERBS_A_IN:
		if (a->len < s->min)
			return -EINVAL;
		return a->len > sizeof(a->data) && !nic_call_attr(b->call, (unsigned)(a - b->attrs)) ? -EFAULT
												     : 0;
	case UVERBS_A_OUT:
		return a->len < s->min ? -EINVAL : 0;
	case UVERBS_A_VALUE:
		return a->len == 4 || a->len == 8 ? 0 : -EINVAL;
	default:
		return a->len ? -EINVAL : 0;
	}
}

static int check_attrs(const struct uverbs_ioctl_method *m, const struct uverbs_bundle *b)
{
	for (unsigned i = 0; i < b->num; i++) {
		const struct ib_uverbs_attr *a = &b->attrs[i];
		const struct uverbs_attr_spec *s = find_spec(m, a->attr_id);
		int r;

		if (!s && (a->flags & UVERBS_ATTR_F_MANDATORY))
			return -EPROTONOSUPPORT;
		if (!s)
			continue;
		if (uverbs_attr(b, a->attr_id) != a) /* given twice */
			return -EINVAL;
		r = check_attr(b, a, s);
		if (r < 0)
			return r;
	}
	for (unsigned i = 0; m->attrs[i].id != 0xffff; i++)
		if (m->attrs[i].mandatory && !uverbs_attr(b, m->attrs[i].id))
			return -EINVAL;
	return 0;
}

int uverbs_ioctl(struct uverbs_file *file, struct nic_call *call)
{
	const struct ib_uverbs_ioctl_hdr *hdr;
	const struct uverbs_ioctl_method *m;
	struct uverbs_bundle b;
	size_t len;
	int r;

	hdr = nic_call_bytes(call, &len);
	if (len < sizeof(*hdr) || hdr->length != len ||
		hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return -EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return -EPROTONOSUPPORT;
	if (hdr->driver_id != RDMA_DRIVER_MLX5)
		return -EINVAL;
	m = find_method(hdr->object_id, hdr->method_id);
	if (!m)
		return -EPROTONOSUPPORT;
	b = (struct uverbs_bundle){.file = file, .call = call, .attrs = hdr->attrs, .num = hdr->num_attrs};
	r = check_attrs(m, &b);
	if (r < 0)
		return r;
	if (!file->has_context && !m->before_context)
		return -EINVAL;
	return m->run(&b);
}
