/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/pd.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>

DEFINE_CLEANUP(struct rnic_pd *, rnic_pd_free)

static int number_pd(struct rnic_pd *pd)
{
	struct mlx5dv_pd dv = {0};
	struct mlx5dv_obj obj = {0};
	int r;

	obj.pd.in = pd->pd;
	obj.pd.out = &dv;
	r = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
	if (r)
		return log_errno(
			-abs(r), "%s: cannot get the number of a protection domain", rnic_name(pd->dev));
	pd->pdn = dv.pdn;
	return 0;
}

int rnic_pd_new(struct rnic_pd **out, struct rnic_device *dev, struct ledger_slot *slot)
{
	CLEANUP(rnic_pd_freep) struct rnic_pd *pd = calloc(1, sizeof(*pd));
	int r;

	if (!pd)
		return -ENOMEM;
	pd->dev = dev;
	pd->pd = ibv_alloc_pd(dev->ctx);
	if (!pd->pd)
		return log_errno(-errno, "%s: cannot make a protection domain", rnic_name(dev));
	pd->slot = slot;
	ledger_made(slot, &(struct ledger_object){.type = LEDGER_PD, .handle = pd->pd->handle});
	r = dev->direct ? number_pd(pd) : 0;
	if (r == 0)
		*out = steal_ptr(&pd);
	return r;
}

int rnic_pd_adopt(struct rnic_pd **out, struct rnic_device *dev, struct ledger_slot *slot)
{
	const struct ledger_object *o = rnic_find_object(slot, LEDGER_PD, 0);
	struct rnic_pd *pd = o ? calloc(1, sizeof(*pd)) : NULL;
	int r;

	if (!pd)
		return o ? -ENOMEM : -EBADMSG;
	pd->dev = dev;
	pd->pd = ibv_import_pd(dev->ctx, o->handle);
	r = pd->pd ? number_pd(pd)
		   : log_errno(-errno, "%s: cannot go on with a protection domain", rnic_name(dev));
	if (r < 0) { /* what it is stays in its slot */
		if (pd->pd)
			ibv_unimport_pd(pd->pd);
		free(pd);
		return r;
	}
	pd->slot = slot;
	*out = pd;
	return 0;
}

void rnic_pd_free(struct rnic_pd *pd)
{
	uint32_t handle = pd->pd ? pd->pd->handle : 0;

	if (pd->pd && ibv_dealloc_pd(pd->pd))
		log_warning("%s: a protection domain is still in use", rnic_name(pd->dev));
	else if (pd->pd)
		ledger_gone(pd->slot, LEDGER_PD, handle);
	free(pd);
}

struct rnic_device *rnic_pd_device(const struct rnic_pd *pd)
{
	return pd->dev;
}
