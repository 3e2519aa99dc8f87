/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem.h - memory keys. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_MEM_H
#define SOFTCX_HW_MEM_H

#include "softcx/hw/copy.h"
#include "softcx/hw/dev.h"

struct hw_mkey {
	/* checked by every access */
	uint32_t key;
	uint32_t owner; /* the PD; of a window: mw.h */
	unsigned access;
	bool invalid; /* by LOCAL_INVAL or SEND_INVAL; a window that shows nothing */
	uint64_t iova, len;
	uint8_t *host; /* of @iova, or NULL */
	uint64_t va;   /* of @iova, in the owner */
	struct hw_mem *mem;

	struct hw_pieces *pieces; /* of an indirect key: indirect.h */
	bool umr;                 /* UMR may change it */
	bool remote_inval;        /* by SEND_INVAL: only if it is made for that */
	uint8_t window_type;      /* 1 or 2; 0: no window */
	uint32_t pdn;
	struct hw_mkey *parent; /* what a window shows a part of; its memory is not the window's */
	unsigned windows;       /* that show a part of this */
};

/* A new key without memory. 0, -EINVAL: no such PD, -ENOMEM, -ENOSPC. */
int hw_mkey_new(struct hw_dev *dev, uint32_t pdn, uint8_t variant, struct hw_mkey **k);

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

#endif
