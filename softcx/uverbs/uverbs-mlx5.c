/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uverbs-caps.h"
#include "softcx/uverbs/uverbs-devx.h"
#include "softcx/uverbs/uverbs-ioctl.h"
#include "softcx/uverbs/uverbs-obj.h"
#include "softcx/uverbs/uverbs-uar.h"

#include <errno.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

static int uar_alloc(struct uverbs_bundle *b)
{
	struct uverbs_uar *uar;
	uint64_t offset;
	uint32_t page, length = UVERBS_PAGE;
	int r;

	if (uverbs_attr_value(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) > MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	r = uverbs_uar_create(b->file, &uar);
	if (r < 0)
		return r;
	offset = uverbs_uar_offset(uar);
	page = hw_uar_index(uar->hw);
	r = uverbs_attr_new_handle(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->obj.handle);
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
	if (r == 0)
		r = uverbs_attr_out(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page, sizeof(page));
	return r;
}

static int uar_destroy(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, UVERBS_UAR, &obj);

	return r < 0 ? r : uverbs_obj_destroy(obj);
}

static int pd_query(struct uverbs_bundle *b)
{
	struct uverbs_obj *obj;
	int r = uverbs_attr_obj(b, MLX5_IB_ATTR_QUERY_PD_HANDLE, UVERBS_PD, &obj);

	if (r < 0)
		return r;
	return uverbs_attr_out(
		b, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &((struct uverbs_pd *)obj)->pdn, sizeof(uint32_t));
}

static int query_eqn(struct uverbs_bundle *b)
{
	uint64_t vector = uverbs_attr_value(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
	uint32_t eqn;

	if (vector >= UVERBS_COMP_VECTORS)
		return -EINVAL;
	eqn = UVERBS_EQN + (uint32_t)vector;
	return uverbs_attr_out(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn, sizeof(eqn));
}

static int query_uar(struct uverbs_bundle *b)
{
	(void)b; /* translates static doorbell registers, which this context has none of */
	return -EINVAL;
}

#define H(id)                                                                                                \
	{                                                                                                    \
		id, UVERBS_A_HANDLE, true, 0                                                                 \
	}
#define NEW(id)                                                                                              \
	{                                                                                                    \
		id, UVERBS_A_NEW, true, 0                                                                    \
	}
#define FD(id)                                                                                               \
	{                                                                                                    \
		id, UVERBS_A_FD, true, 0                                                                     \
	}
#define V(id)                                                                                                \
	{                                                                                                    \
		id, UVERBS_A_VALUE, true, 0                                                                  \
	}
#define MAYBE_V(id)                                                                                          \
	{                                                                                                    \
		id, UVERBS_A_VALUE, false, 0                                                                 \
	}
#define IN(id, min)                                                                                          \
	{                                                                                                    \
		id, UVERBS_A_IN, true, min                                                                   \
	}
#define OUT(id, min)                                                                                         \
	{                                                                                                    \
		id, UVERBS_A_OUT, true, min                                                                  \
	}
#define END UVERBS_ATTR_END

const struct uverbs_ioctl_method uverbs_mlx5_methods[] = {
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, false, uar_alloc,
		{NEW(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), V(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
			OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
			OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
			OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4), END}},
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, false, uar_destroy,
		{H(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), END}},
	{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, false, pd_query,
		{H(MLX5_IB_ATTR_QUERY_PD_HANDLE), OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4), END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, false, query_eqn,
		{V(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4), END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, false, query_uar,
		{V(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX), OUT(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4), END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, false, uverbs_devx_other,
		{IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, 16), OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 16), END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, false, uverbs_devx_subscribe,
		{FD(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
			{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, UVERBS_A_HANDLE, false, 0},
			IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 2),
			MAYBE_V(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE),
			MAYBE_V(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM), END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, false, uverbs_devx_umem_reg,
		{NEW(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), V(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
			V(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN), V(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
			MAYBE_V(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP),
			OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4), END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, false, uverbs_devx_umem_dereg,
		{H(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, false, uverbs_devx_create,
		{NEW(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE), IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, 16),
			OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 16), END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, false, uverbs_devx_destroy,
		{H(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, false, uverbs_devx_modify,
		{H(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE), IN(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, 16),
			OUT(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, 16), END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, false, uverbs_devx_query,
		{H(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE), IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, 16),
			OUT(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, 16), END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, false, uverbs_devx_query_async,
		{H(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE),
			IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, 16),
			FD(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
			V(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN),
			V(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, false,
		uverbs_devx_event_fd,
		{NEW(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
			V(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS), END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, false, uverbs_devx_cmd_fd,
		{NEW(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE), END}},
};
const unsigned uverbs_mlx5_methods_len = sizeof(uverbs_mlx5_methods) / sizeof(*uverbs_mlx5_methods);
