/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/pd.h"

#include <errno.h>

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
