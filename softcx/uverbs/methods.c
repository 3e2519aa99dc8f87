/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/cq.h"
#include "softcx/uverbs/ioctl.h"
#include "softcx/uverbs/mr.h"
#include "softcx/uverbs/qp.h"
#include "softcx/uverbs/srq.h"
#include "softcx/uverbs/write.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

/* ---- device ----------------------------------------------------------------------------- */

static int invoke_write(struct uverbs_bundle *b)
{
	const struct uverbs_cmd cmd = {
		.core = uverbs_attr_udata(b, UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT),
		.drv = uverbs_attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT),
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
	struct uverbs_udata drv = uverbs_attr_udata(b, UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT);
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

const struct uverbs_ioctl_method uverbs_core_methods[] = {
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
const unsigned uverbs_core_methods_len = COUNT(uverbs_core_methods);
