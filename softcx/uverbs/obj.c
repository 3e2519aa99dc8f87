/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/obj.h"

#include "mlx5/prm.h"

#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/uar.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <string.h>

static uint64_t round_up_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* ---- protection domain ------------------------------------------------------------------ */

static int pd_destroy(struct uverbs_obj *obj)
{
	return hw_pd_free(obj->file->dev, ((struct uverbs_pd *)obj)->pdn);
}

int uverbs_pd_create(struct uverbs_file *file, struct uverbs_pd **out)
{
	struct uverbs_pd *pd = uverbs_obj_new(file, UVERBS_PD, sizeof(*pd));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)pd;
	int r;

	if (!pd)
		return -ENOMEM;
	r = hw_pd_alloc(file->dev, &pd->pdn);
	if (r < 0)
		return r;
	uverbs_obj_commit(&pending, pd_destroy);
	*out = pd;
	return 0;
}

int uverbs_pd_find(struct uverbs_file *file, uint64_t handle, struct uverbs_pd **pd)
{
	return uverbs_obj_find(file, UVERBS_PD, handle, (struct uverbs_obj **)pd);
}

/* ---- memory region ---------------------------------------------------------------------- */

enum {
	MR_WRITES = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
		    IB_UVERBS_ACCESS_REMOTE_ATOMIC | IB_UVERBS_ACCESS_MW_BIND,
	MR_NEEDS_LOCAL_WRITE = IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC,
	MR_KNOWN = MR_WRITES | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_ZERO_BASED |
		   IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_HUGETLB | IB_UVERBS_ACCESS_OPTIONAL_RANGE,
	MR_HW = HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_READ | HW_REMOTE_ATOMIC,
};

static int mr_check_access(unsigned access)
{
	if (access & ~MR_KNOWN)
		return -EINVAL;
	if ((access & MR_NEEDS_LOCAL_WRITE) && !(access & IB_UVERBS_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return access & IB_UVERBS_ACCESS_ON_DEMAND ? -EOPNOTSUPP : 0;
}

static int mr_check_range(uint64_t va, uint64_t len, uint64_t iova)
{
	if (len == 0 || va + len < va || iova + len < iova)
		return -EINVAL;
	return (va ^ iova) % UVERBS_PAGE ? -EINVAL : 0;
}

static struct hw_mkey_attr mr_key(const struct uverbs_mr *mr)
{
	/* No peer may invalidate it: Linux, hw/mlx5/mr.c, set_mkc_access_pd_addr_fields, leaves en_rinval 0
	 */
	return (struct hw_mkey_attr){
		.pdn = mr->pd->pdn,
		.iova = mr->iova,
		.len = mr->len,
		.access = mr->access & MR_HW,
		.mem = mr->mem,
		.mem_off = mr->va - mr->mem->va,
	};
}

static int mr_destroy(struct uverbs_obj *obj)
{
	struct uverbs_mr *mr = (struct uverbs_mr *)obj;
	int r = hw_mkey_destroy(obj->file->dev, mr->key);

	if (r < 0)
		return r;
	hw_mem_put(mr->mem);
	return 0;
}

int uverbs_mr_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_reg_mr *req,
	struct uverbs_mr **out)
{
	CLEANUP(hw_mem_putp) struct hw_mem *mem = NULL;
	struct hw_mkey_attr key;
	struct uverbs_mr *mr;
	struct uverbs_pd *pd;
	int r;

	r = mr_check_access(req->access_flags);
	if (r == 0)
		r = mr_check_range(req->start, req->length, req->hca_va);
	if (r == 0 && uverbs_pd_find(file, req->pd_handle, &pd) < 0)
		r = -EINVAL;
	if (r == 0)
		r = nic_call_mem(call, req->start, req->length, req->access_flags & MR_WRITES, false, &mem);
	if (r)
		return r;

	mr = uverbs_obj_new(file, UVERBS_MR, sizeof(*mr));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)mr;
	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->mem = mem;
	mr->va = req->start;
	mr->iova = req->hca_va;
	mr->len = req->length;
	mr->access = req->access_flags;
	key = mr_key(mr);
	r = hw_mkey_create(file->dev, &key, &mr->key);
	if (r < 0)
		return r;
	mem = NULL;
	uverbs_obj_need(&mr->obj, &pd->obj);
	uverbs_obj_commit(&pending, mr_destroy);
	*out = mr;
	return 0;
}

/**
 * True if the kernel changes the key in place: Linux hw/mlx5/mr.c, mlx5_ib_rereg_user_mr and
 * can_use_umr_rereg_access.
 */
static bool mr_keeps_key(const struct uverbs_mr *mr, uint32_t flags, unsigned access)
{
	const unsigned by_umr = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
				IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
				IB_UVERBS_ACCESS_RELAXED_ORDERING;

	return !(flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !((mr->access ^ access) & ~by_umr);
}

static int mr_change_key(struct hw_dev *dev, const struct uverbs_mr *old, struct uverbs_mr *want, bool keep)
{
	const struct hw_mkey_attr attr = mr_key(want);
	int r;

	if (keep)
		return hw_mkey_change(dev, old->key, &attr);
	r = hw_mkey_create(dev, &attr, &want->key);
	if (r < 0)
		return r;
	r = hw_mkey_destroy(dev, old->key);
	if (r < 0)
		hw_mkey_destroy(dev, want->key);
	return r;
}

int uverbs_mr_rereg(struct uverbs_mr *mr, struct nic_call *call, const struct ib_uverbs_rereg_mr *req)
{
	CLEANUP(hw_mem_putp) struct hw_mem *mem = NULL;
	struct uverbs_file *file = mr->obj.file;
	struct uverbs_mr want = *mr;
	int r = 0;

	if (!req->flags || (req->flags & ~(uint32_t)(IBV_REREG_MR_CHANGE_TRANSLATION |
						     IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)))
		return -EINVAL;
	if (req->flags & IBV_REREG_MR_CHANGE_ACCESS) {
		r = mr_check_access(req->access_flags);
		want.access = req->access_flags;
	}
	if (r == 0 && (req->flags & IBV_REREG_MR_CHANGE_PD))
		r = uverbs_pd_find(file, req->pd_handle, &want.pd) < 0 ? -EINVAL : 0;
	if (r == 0 && (req->flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		r = mr_check_range(req->start, req->length, req->hca_va);
		want.va = req->start;
		want.iova = req->hca_va;
		want.len = req->length;
	}
	if (r == 0)
		r = nic_call_mem(call, want.va, want.len, want.access & MR_WRITES, false, &mem);
	if (r)
		return r;
	want.mem = mem;
	r = mr_change_key(file->dev, mr, &want, mr_keeps_key(mr, req->flags, want.access));
	if (r < 0)
		return r;
	mr->pd->obj.users--;
	want.pd->obj.users++;
	want.obj = mr->obj;
	want.obj.needs[0] = &want.pd->obj;
	mem = mr->mem;
	*mr = want;
	return 0;
}

int uverbs_mr_find(struct uverbs_file *file, uint64_t handle, struct uverbs_mr **mr)
{
	return uverbs_obj_find(file, UVERBS_MR, handle, (struct uverbs_obj **)mr);
}

/* ---- completion queue ------------------------------------------------------------------- */

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
	*log_size = (uint8_t)__builtin_ctzll(round_up_pow2((uint64_t)cqe + 1));
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

/* ---- shared receive queue --------------------------------------------------------------- */

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

	/* A next-segment of 16 bytes, then the scatter list (Linux mlx5_ib: one WQE is never used) */
	if (req->max_wr >= UVERBS_MAX_SRQ_WR || req->max_sge > UVERBS_MAX_SRQ_SGE)
		return -EINVAL;
	if (drv->flags || drv->reserved0 || drv->reserved1)
		return -EINVAL;
	wqes = (uint32_t)round_up_pow2(req->max_wr + 1);
	stride = (uint32_t)round_up_pow2(16 + 16 * req->max_sge);
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

/* ---- address handle --------------------------------------------------------------------- */

static int mw_destroy(struct uverbs_obj *obj)
{
	return hw_mw_destroy(obj->file->dev, ((struct uverbs_mw *)obj)->key >> 8);
}

int uverbs_mw_create(struct uverbs_file *file, uint64_t pd_handle, unsigned type, struct uverbs_mw **out)
{
	struct uverbs_pd *pd;
	struct uverbs_mw *mw;
	int r;

	if (uverbs_pd_find(file, pd_handle, &pd) < 0)
		return -EINVAL;
	mw = uverbs_obj_new(file, UVERBS_MW, sizeof(*mw));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)mw;
	if (!mw)
		return -ENOMEM;
	r = hw_mw_create(file->dev, pd->pdn, type, &mw->key);
	if (r < 0)
		return r;
	uverbs_obj_need(&mw->obj, &pd->obj);
	uverbs_obj_commit(&pending, mw_destroy);
	*out = mw;
	return 0;
}

static int ah_destroy(struct uverbs_obj *obj)
{
	(void)obj; /* the device has nothing: the address travels in each UD WQE */
	return 0;
}

int uverbs_ah_create(struct uverbs_file *file, const struct ib_uverbs_create_ah *req, uint8_t dmac[6],
	struct uverbs_obj **out)
{
	struct uverbs_pd *pd;
	struct uverbs_obj *ah;
	uint8_t gid[16];

	if (req->attr.port_num != 1 || (!req->attr.is_global && !hw_is_infiniband(file->dev)) ||
		(req->attr.is_global && !hw_gid(file->dev, req->attr.grh.sgid_index, gid)))
		return -EINVAL;
	if (uverbs_pd_find(file, req->pd_handle, &pd) < 0)
		return -EINVAL;
	ah = uverbs_obj_new(file, UVERBS_AH, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = ah;
	ah->user_handle = req->user_handle;
	uverbs_obj_need(ah, &pd->obj);
	hw_gid_mac(req->attr.grh.dgid, dmac);
	uverbs_obj_commit(&pending, ah_destroy);
	*out = ah;
	return 0;
}
