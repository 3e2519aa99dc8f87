/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uverbs.h"
#include "util/pow2.h"

#include <errno.h>
#include <infiniband/verbs.h>

static void srq_on_event(void *arg, int event)
{
	struct uverbs_srq *srq = arg;

	srq->limit = 0;
	uverbs_async_post(srq->async, srq->obj.user_handle, event, &srq->posted);
}

static int srq_destroy(struct uverbs_obj *obj)
{
	struct uverbs_srq *srq = (struct uverbs_srq *)obj;
	int r = hw_srq_destroy(obj->file->dev, srq->hw);

	if (r < 0)
		return r;
	uverbs_channel_put(srq->async);
	return 0;
}

int uverbs_srq_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_create_srq *req,
	struct uverbs_channel *async, const struct mlx5_ib_create_srq *drv, struct uverbs_srq **out)
{
	CLEANUP(hw_mem_putp) struct hw_mem *buf = NULL;
	CLEANUP(hw_mem_putp) struct hw_mem *db = NULL;
	struct uverbs_pd *pd;
	uint32_t wqes, stride;
	int r;

	/* A next-segment of 16 bytes, then the scatter list (Linux hw/mlx5/srq.c: one WQE is never used, and
	 * max_wr is below 1 << log_max_srq_sz) */
	if (req->max_wr > UVERBS_MAX_SRQ_WR || req->max_sge > UVERBS_MAX_SRQ_SGE)
		return -EINVAL;
	if (drv->flags || drv->reserved0 || drv->reserved1)
		return -EINVAL;
	wqes = (uint32_t)pow2_at_least(req->max_wr + 1);
	stride = (uint32_t)pow2_at_least(16 + 16 * req->max_sge);
	if (stride < 32)
		stride = 32;
	if (uverbs_pd_find(file, req->pd_handle, &pd) < 0)
		return -EINVAL;
	r = nic_call_mem(call, drv->buf_addr, (uint64_t)wqes * stride, true, true, &buf);
	if (r == 0)
		r = nic_call_mem(call, drv->db_addr, 8, true, true, &db);
	if (r)
		return r;

	struct uverbs_srq *srq = uverbs_obj_new(file, UVERBS_SRQ, sizeof(*srq));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)srq;
	if (!srq)
		return -ENOMEM;
	const struct hw_srq_attr attr = {
		.pdn = pd->pdn,
		.buf = buf,
		.buf_off = drv->buf_addr - buf->va,
		.wqes = wqes,
		.stride = stride,
		.db = db,
		.db_off = drv->db_addr - db->va,
		.on_event = srq_on_event,
		.arg = srq,
	};
	r = hw_srq_create(file->dev, &attr, &srq->hw);
	if (r < 0)
		return r;
	srq->obj.user_handle = req->user_handle;
	srq->max_wr = wqes - 1;
	srq->max_sge = stride / 16 - 1;
	srq->async = uverbs_channel_get(async);
	uverbs_obj_need(&srq->obj, &pd->obj);
	uverbs_obj_commit(&pending, srq_destroy);
	*out = srq;
	return 0;
}

int uverbs_srq_modify(struct uverbs_srq *srq, uint32_t mask, uint32_t limit)
{
	int r;

	if (mask & ~(uint32_t)IBV_SRQ_LIMIT) /* mlx5 has no SRQ resize */
		return -EINVAL;
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	if (limit >= srq->max_wr)
		return -EINVAL;
	r = hw_srq_limit(srq->hw, (uint16_t)limit);
	if (r == 0)
		srq->limit = limit;
	return r;
}

int uverbs_srq_destroy(struct uverbs_srq *srq, uint32_t *events_reported)
{
	struct uverbs_channel *async = srq->async;
	uint32_t posted = srq->posted;
	uint64_t key = srq->obj.user_handle;
	int r = uverbs_obj_destroy(&srq->obj);

	if (r < 0)
		return r;
	*events_reported = posted - uverbs_channel_purge(async, key);
	return 0;
}

int uverbs_srq_find(struct uverbs_file *file, uint64_t handle, struct uverbs_srq **srq)
{
	return uverbs_obj_find(file, UVERBS_SRQ, handle, (struct uverbs_obj **)srq);
}
