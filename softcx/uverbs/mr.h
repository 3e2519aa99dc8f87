/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mr.h - memory regions and memory windows, independent of the ABI.
 *
 * Creators may return NIC_AGAIN (call.h): nothing has changed then.
 */
#ifndef SOFTCX_UVERBS_MR_H
#define SOFTCX_UVERBS_MR_H

#include "softcx/uverbs/event.h"

#include <rdma/ib_user_verbs.h>

struct uverbs_mr {
	struct uverbs_obj obj;
	struct uverbs_pd *pd;
	struct hw_mem *mem;
	uint64_t va, iova, len;
	unsigned access; /* IB_UVERBS_ACCESS_* */
	uint32_t key;    /* lkey and rkey */
};

int uverbs_mr_create(struct uverbs_file *file, struct nic_call *call, const struct ib_uverbs_reg_mr *req,
	struct uverbs_mr **mr);
/** IBV_REREG_MR_*: another PD or other rights keep the key; for other memory a new one comes. */
int uverbs_mr_rereg(struct uverbs_mr *mr, struct nic_call *call, const struct ib_uverbs_rereg_mr *req);
int uverbs_mr_find(struct uverbs_file *file, uint64_t handle, struct uverbs_mr **mr);

struct uverbs_mw {
	struct uverbs_obj obj;
	uint32_t key; /* as made; each bind changes its variant */
};

/** @type: IB_MW_TYPE_*, which is 1 or 2. */
int uverbs_mw_create(struct uverbs_file *file, uint64_t pd_handle, unsigned type, struct uverbs_mw **mw);

/*
 * Protection domains and address handles, independent of the ABI.
 *
 * The device has nothing of an address handle: its address travels in each UD WQE.
 */

struct uverbs_pd {
	struct uverbs_obj obj;
	uint32_t pdn;
};

int uverbs_pd_create(struct uverbs_file *file, struct uverbs_pd **pd);
int uverbs_pd_find(struct uverbs_file *file, uint64_t handle, struct uverbs_pd **pd);

/** @dmac: where UD packets to the address go. RoCE needs a GRH: -EINVAL without. */
int uverbs_ah_create(struct uverbs_file *file, const struct ib_uverbs_create_ah *req, uint8_t dmac[6],
	struct uverbs_obj **ah);

#endif
