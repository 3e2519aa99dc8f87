/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/devx.h"
#include "softcx/uverbs/ioctl.h"
#include "softcx/uverbs/pd.h"
#include "softcx/uverbs/uar.h"
#include "util/array.h"

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

const struct uverbs_ioctl_method uverbs_mlx5_methods[] = {
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, false, uar_alloc,
		{UVERBS_NEW(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), UVERBS_VALUE(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4),
			UVERBS_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, false, uar_destroy,
		{UVERBS_HANDLE(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), UVERBS_ATTR_END}},
	{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, false, pd_query,
		{UVERBS_HANDLE(MLX5_IB_ATTR_QUERY_PD_HANDLE), UVERBS_OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4),
			UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, false, query_eqn,
		{UVERBS_VALUE(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, false, query_uar,
		{UVERBS_VALUE(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, false, uverbs_devx_other,
		{UVERBS_IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, false, uverbs_devx_subscribe,
		{UVERBS_FD(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE),
			UVERBS_MAYBE_HANDLE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 2),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, false, uverbs_devx_umem_reg,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
			UVERBS_MAYBE_VALUE(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, false, uverbs_devx_umem_dereg,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, false, uverbs_devx_create,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, false, uverbs_devx_destroy,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, false, uverbs_devx_modify,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, false, uverbs_devx_query,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, 16),
			UVERBS_OUT(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, 16), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, false, uverbs_devx_query_async,
		{UVERBS_HANDLE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE),
			UVERBS_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, 16),
			UVERBS_FD(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, false,
		uverbs_devx_event_fd,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
			UVERBS_VALUE(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS), UVERBS_ATTR_END}},
	{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, false, uverbs_devx_cmd_fd,
		{UVERBS_NEW(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE), UVERBS_ATTR_END}},
};
const unsigned uverbs_mlx5_methods_len = COUNT(uverbs_mlx5_methods);
