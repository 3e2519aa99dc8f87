/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dc.h - queue pairs of the dynamically connected transport, as far as the kernel treats them unlike others:
 * initiators have transitions of their own, targets have neither queues nor a number before they are in RTR
 * (Linux hw/mlx5/qp.c: create_dct, mlx5_ib_modify_dct, modify_dci_qp_is_ok).
 */
#ifndef SOFTCX_UVERBS_DC_H
#define SOFTCX_UVERBS_DC_H

#include "softcx/uverbs/qp.h"

#include <infiniband/verbs.h>

/** @type: of a QP of type IBV_QPT_DRIVER. -EINVAL: the flags name neither an initiator nor a target. */
int uverbs_dc_type(const struct mlx5_ib_create_qp *drv, enum hw_qp_type *type);

/** -EINVAL without a shared receive queue and a CQ. */
int uverbs_target_create(struct uverbs_file *file, const struct ib_uverbs_ex_create_qp *req,
	struct uverbs_channel *async, const struct mlx5_ib_create_qp *drv, struct uverbs_qp **qp);
/** @dctn: the number of the target, from RTR on. */
int uverbs_target_modify(struct uverbs_qp *qp, const struct ib_uverbs_modify_qp *req, uint32_t *dctn);

/** @mask: of the attributes beside the state. */
bool uverbs_initiator_may(enum ibv_qp_state from, enum ibv_qp_state to, unsigned mask);

#endif
