/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mw.h - memory windows, and the one form of UMR that binds and frees them. Internal to softcx/hw.
 *
 * The WQE is the one that libmlx5 builds for IBV_WR_BIND_MW and IBV_WR_LOCAL_INV (rdma-core,
 * providers/mlx5/qp.c, set_bind_wr): ctrl with the window's key, a UMR control segment, a context with the
 * changes, and for a bind a KLM segment with the key and the range to show. Only the index of the window's
 * key counts; its variant is set to that of the context. A type 2 window belongs to the queue that bound it
 * (type 2B). Every mistake ends the queue with the syndrome of a failed bind.
 */
#ifndef SOFTCX_HW_MW_H
#define SOFTCX_HW_MW_H

#include "softcx/hw/exec.h"

/** Owners of windows: all queues of a PD (type 1), or the queue that bound it (type 2). Neither is a PD
 * number, so a window is never an lkey. */
static inline uint32_t hw_mw_owner_pd(uint32_t pdn)
{
	return pdn | 1u << 30;
}

static inline uint32_t hw_mw_owner_qp(uint32_t qpn)
{
	return qpn | 1u << 31;
}

int hw_mw_exec(const struct hw_wqe *w);  /* a UMR WQE with a context; 0 or a fault */
void hw_mw_free(struct hw_mkey *window); /* shows nothing any more */

#endif
