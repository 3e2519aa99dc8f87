/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * umr.h - the segments of a UMR WQE, in bytes from its start (rdma-core providers/mlx5/mlx5dv.h, struct
 * mlx5_wqe_umr_ctrl_seg and mlx5_wqe_mkey_context_seg). Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_UMR_H
#define SOFTCX_HW_UMR_H

#include "softcx/hw/hw.h"

enum {
	UMR = 16,
	UMR_OCTOWORDS = UMR + 4, /* 16 bits; of UMR_DATA */
	UMR_BSF_OCTOWORDS = UMR + 6,
	UMR_MASK = UMR + 8, /* 64 bits: what of the context counts */
	CONTEXT = UMR + 48,
	CONTEXT_ACCESS = CONTEXT + 2,
	CONTEXT_QPN_KEY = CONTEXT + 4,
	CONTEXT_START = CONTEXT + 16,
	CONTEXT_LEN = CONTEXT + 24,
	UMR_DATA = CONTEXT + 64,
	UMR_FREE_DS = UMR_DATA / 16, /* a WQE without data */
};
enum { /* flags, the first byte of the UMR segment */
	UMR_CHECK_QPN = 1 << 3,
	UMR_TRANSLATION = 1 << 4,
	UMR_CHECK_FREE = 1 << 5,
	UMR_INLINE = 1 << 7,
};
enum { /* UMR_MASK */
	UMR_SETS_LEN = 1 << 0,
	UMR_SETS_START = 1 << 6,
	UMR_SETS_KEY = 1 << 13,
	UMR_SETS_QPN = 1 << 14,
	UMR_SETS_ACCESS = 0xf << 18,
	UMR_SETS_FREE = 1 << 29,
};
enum { CONTEXT_FREE = 1 << 6 }; /* the first byte of the context */

/* The rights that the byte at CONTEXT_ACCESS gives. */
static inline unsigned umr_rights(uint8_t flags)
{
	enum { LOCAL_WRITE = 1 << 3, REMOTE_READ = 1 << 4, REMOTE_WRITE = 1 << 5, ATOMIC = 1 << 6 };

	return (flags & LOCAL_WRITE ? HW_LOCAL_WRITE : 0) | (flags & REMOTE_READ ? HW_REMOTE_READ : 0) |
	       (flags & REMOTE_WRITE ? HW_REMOTE_WRITE : 0) | (flags & ATOMIC ? HW_REMOTE_ATOMIC : 0);
}

#endif
