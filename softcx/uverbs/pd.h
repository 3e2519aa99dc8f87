/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pd.h - protection domains and address handles, independent of the ABI.
 *
 * The device has nothing of an address handle: its address travels in each UD WQE.
 */
#ifndef SOFTCX_UVERBS_PD_H
#define SOFTCX_UVERBS_PD_H

#include "softcx/uverbs/event.h"

#include <rdma/ib_user_verbs.h>

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
