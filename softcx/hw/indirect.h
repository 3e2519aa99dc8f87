/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * indirect.h - memory keys over other keys. Internal to softcx/hw.
 *
 * Such a key translates its range into ranges of other keys of its PD: a list of pieces of any size (KLM), of
 * one size (KSM), or pieces that repeat at a stride. Pieces may be ranges of indirect keys, HW_INDIRECTIONS
 * deep. The rights of the key decide what a peer may do; a piece that is stored to needs the local write
 * right of its own key only, which is how Linux shows regions of the PD's all-memory key (rdma/rw.c).
 * Pieces are looked up at each access: nothing keeps their keys. hw_key_span() (mem.h) resolves them.
 */
#ifndef SOFTCX_HW_INDIRECT_H
#define SOFTCX_HW_INDIRECT_H

#include "softcx/hw/exec.h"

/**
 * A UMR WQE: one that binds or frees a window (mw.h), or one that gives an indirect key its pieces, as
 * rdma-core's mlx5dv_wr_mkey_configure() and its setters build it (providers/mlx5/qp.c). Of the latter kind
 * only inline pieces, without signature or crypto. 0 or a fault.
 */
int hw_umr_exec(const struct hw_wqe *w);

#endif
