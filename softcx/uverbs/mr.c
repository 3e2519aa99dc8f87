/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>

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
