/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/prm.h"
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/pow2.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>

static void cq_on_comp(void *arg)
{
	struct uverbs_cq *cq = arg;
	struct ib_uverbs_comp_event_desc desc = {.cq_handle = cq->obj.user_handle};

	if (uverbs_channel_post(cq->comp, &desc, sizeof(desc)))
		cq->comp_posted++;
}

static void cq_on_error(void *arg, int event)
{
	struct uverbs_cq *cq = arg;

	uverbs_async_post(cq->async, cq->obj.user_handle, event, &cq->async_posted);
}

static int cq_destroy(struct uverbs_obj *obj)
{
	struct uverbs_cq *cq = (struct uverbs_cq *)obj;
	int r = hw_cq_destroy(obj->file->dev, cq->hw);

	if (r < 0)
		return r;
	uverbs_channel_put(cq->comp);
	uverbs_channel_put(cq->async);
	return 0;
}

/* Ring size for @cqe wanted entries: one is never used (Linux mlx5_ib). */
static int cq_ring(uint32_t cqe, uint32_t cqe_bytes, uint8_t *log_size)
{
	if (cqe == 0 || cqe > UVERBS_MAX_CQE || (cqe_bytes != 64 && cqe_bytes != 128))
		return -EINVAL;
	*log_size = (uint8_t)__builtin_ctzll(pow2_at_least((uint64_t)cqe + 1));
	return 0;
}

int uverbs_cq_create(struct uverbs_file *file, struct nic_call *call, const struct uverbs_cq_req *req,
	const struct mlx5_ib_create_cq *drv, struct uverbs_cq **out)
{
	CLEANUP(hw_mem_putp) struct hw_mem *buf = NULL;
	CLEANUP(hw_mem_putp) struct hw_mem *db = NULL;
	struct uverbs_uar *uar;
	uint8_t log_size;
	int r;

	if (req->flags &
		~(uint32_t)(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;
	if (req->comp_vector >= UVERBS_COMP_VECTORS)
		return -EINVAL;
	if (drv->cqe_comp_en || (drv->flags & ~MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS) !=
					MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
		return -EINVAL;
	r = cq_ring(req->cqe, drv->cqe_size, &log_size);
	if (r == 0)
		r = uverbs_uar_find(file, drv->uar_page_index, &uar);
	if (r == 0)
		r = nic_call_mem(call, drv->buf_addr, (uint64_t)drv->cqe_size << log_size, true, true, &buf);
	if (r == 0)
		r = nic_call_mem(call, drv->db_addr, 8, true, true, &db);
	if (r)
		return r;

	struct uverbs_cq *cq = uverbs_obj_new(file, UVERBS_CQ, sizeof(*cq));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)cq;
	if (!cq)
		return -ENOMEM;
	const struct hw_cq_attr attr = {
		.buf = buf,
		.buf_off = drv->buf_addr - buf->va,
		.db = db,
		.db_off = drv->db_addr - db->va,
		.uar = drv->uar_page_index,
		.log_size = log_size,
		.cqe_bytes = (uint8_t)drv->cqe_size,
		.software = file->software,
		.time = file->time,
		.oi = req->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN,
		.on_comp = cq_on_comp,
		.on_error = cq_on_error,
		.arg = cq,
	};
	r = hw_cq_create(file->dev, &attr, &cq->hw);
	if (r < 0)
		return r;
	cq->obj.user_handle = req->user_handle;
	cq->cqe = (1u << log_size) - 1;
	cq->cqe_bytes = (uint8_t)drv->cqe_size;
	cq->ts_format = drv->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS      ? PRM_TS_REAL_TIME
			: req->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ? PRM_TS_FREE_RUNNING
									       : UVERBS_TS_ANY;
	cq->comp = uverbs_channel_get(req->comp);
	cq->async = uverbs_channel_get(req->async);
	uverbs_obj_need(&cq->obj, &uar->obj);
	uverbs_obj_commit(&pending, cq_destroy);
	*out = cq;
	return 0;
}

int uverbs_cq_resize(
	struct uverbs_cq *cq, struct nic_call *call, uint32_t cqe, const struct mlx5_ib_resize_cq *drv)
{
	CLEANUP(hw_mem_putp) struct hw_mem *buf = NULL;
	uint8_t log_size;
	int r;

	if (drv->reserved0 || drv->reserved1)
		return -EINVAL;
	r = cq_ring(cqe, drv->cqe_size, &log_size);
	if (r == 0)
		r = nic_call_mem(call, drv->buf_addr, (uint64_t)drv->cqe_size << log_size, true, true, &buf);
	if (r)
		return r;
	r = hw_cq_resize(
		cq->obj.file->dev, cq->hw, buf, drv->buf_addr - buf->va, log_size, (uint8_t)drv->cqe_size);
	if (r < 0)
		return r;
	cq->cqe = (1u << log_size) - 1;
	cq->cqe_bytes = (uint8_t)drv->cqe_size;
	return 0;
}

int uverbs_cq_destroy(struct uverbs_cq *cq, struct ib_uverbs_destroy_cq_resp *resp)
{
	struct uverbs_channel *comp = cq->comp, *async = cq->async;
	uint32_t comp_posted = cq->comp_posted, async_posted = cq->async_posted;
	uint64_t key = cq->obj.user_handle;
	int r = uverbs_obj_destroy(&cq->obj);

	if (r < 0)
		return r;
	memset(resp, 0, sizeof(*resp));
	resp->comp_events_reported = comp_posted - uverbs_channel_purge(comp, key);
	resp->async_events_reported = async_posted - uverbs_channel_purge(async, key);
	return 0;
}

int uverbs_cq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_cq **cq)
{
	return uverbs_obj_find(file, UVERBS_CQ, handle, (struct uverbs_obj **)cq);
}
