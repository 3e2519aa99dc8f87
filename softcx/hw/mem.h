/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.h - memory keys. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_MEM_H
#define SOFTCX_HW_MEM_H

#include "softcx/hw/dev.h"
#include "softcx/hw/hw.h"

/*
 * copy.c: copies between ranges of memory of applications.
 */

/** Bytes that a key covers, resolved. @host is NULL when only a process has them. */
struct hw_span {
	uint8_t *host;
	uint64_t va;
	uint32_t len;
	struct hw_mem *mem; /* used only when @host is NULL */
};

/**
 * Copy @len bytes: out of spans, into spans, or from spans to spans. The spans hold at least @len bytes.
 * Every aligned 8-byte word of a source is read once and aligned words of a destination are stored whole, as
 * by DMA, except in the bulk of copies above 4 KiB. False: the memory of another process could not be
 * reached.
 */
bool hw_gather(void *dst, const struct hw_span *src, unsigned nsrc, uint32_t len);
bool hw_scatter(const struct hw_span *dst, unsigned ndst, const void *src, uint32_t len);
/** Like hw_scatter() of all that the spans hold, but the last span first: no order within a message is
 * promised. */
bool hw_scatter_backwards(const struct hw_span *dst, unsigned ndst, const void *src);
bool hw_copy(
	const struct hw_span *dst, unsigned ndst, const struct hw_span *src, unsigned nsrc, uint32_t len);

struct hw_wqe;

struct hw_mkey {
	/* checked by every access */
	uint32_t key;
	uint32_t owner; /* the PD; of a window: hw_mw_owner_pd(), _qp() */
	unsigned access;
	bool invalid; /* by LOCAL_INVAL or SEND_INVAL; a window that shows nothing */
	uint64_t iova, len;
	uint8_t *host; /* of @iova, or NULL */
	uint64_t va;   /* of @iova, in the owner */
	struct hw_mem *mem;

	struct hw_pieces *pieces; /* of an indirect key */
	bool umr;                 /* UMR may change it */
	bool remote_inval;        /* by SEND_INVAL: only if it is made for that */
	uint8_t window_type;      /* 1 or 2; 0: no window */
	uint32_t pdn;
	struct hw_mkey *parent; /* what a window shows a part of; its memory is not the window's */
	unsigned windows;       /* that show a part of this */
};

static inline bool hw_key_covers(
	const struct hw_mkey *k, uint32_t key, uint32_t pdn, unsigned access, uint64_t va, uint32_t len)
{
	if ((k->key ^ key) | (k->owner ^ pdn) | (access & ~k->access) | k->invalid)
		return false;
	va -= k->iova;
	return va <= k->len && len <= k->len - va;
}

/**
 * Resolves [off, off+len) of the indirect key @k, counted from its first byte, for @access. A range in one
 * piece becomes that of the piece. False: part of it leads nowhere, or to a key that does not allow it.
 */
bool hw_indirect_span(
	const struct hw_mkey *k, unsigned access, uint64_t off, uint32_t len, struct hw_span *out);

/**
 * Resolves [va, va+len) under @key. False: the key does not exist or was invalidated, belongs to another
 * PD, does not cover the range, or lacks one of the rights in @access.
 */
static inline bool hw_key_span(struct hw_dev *dev, uint32_t key, uint32_t pdn, unsigned access, uint64_t va,
	uint32_t len, struct hw_span *out)
{
	const struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);

	if (!k || !hw_key_covers(k, key, pdn, access, va, len))
		return false;
	va -= k->iova;
	if (__builtin_expect(k->pieces != NULL, 0))
		return hw_indirect_span(k, access, va, len, out);
	out->host = k->host ? k->host + va : NULL;
	out->va = k->va + va;
	out->len = len;
	out->mem = k->mem;
	return true;
}

/** Makes @key unusable until it is destroyed. False: it is not a key of @pdn, or @remote is set and a peer
 * may not invalidate it. */
bool hw_key_invalidate(struct hw_dev *dev, uint32_t key, uint32_t pdn, bool remote);

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

/*
 * Memory keys over other keys.
 *
 * Such a key translates its range into ranges of other keys of its PD: a list of pieces of any size (KLM), of
 * one size (KSM), or pieces that repeat at a stride. Pieces may be ranges of indirect keys, HW_INDIRECTIONS
 * deep. The rights of the key decide what a peer may do; a piece that is stored to needs the local write
 * right of its own key only, which is how Linux shows regions of the PD's all-memory key (rdma/rw.c).
 * Pieces are looked up at each access: nothing keeps their keys. hw_key_span() (mem.h) resolves them.
 */

/**
 * A UMR WQE: one that binds or frees a window, or one that gives an indirect key its pieces, as
 * rdma-core's mlx5dv_wr_mkey_configure() and its setters build it (providers/mlx5/qp.c). Of the latter kind
 * only inline pieces, without signature or crypto. 0 or a fault.
 */
int hw_umr_exec(const struct hw_wqe *w);

#endif
