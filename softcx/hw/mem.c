/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/mem.h"

#include "softcx/hw/exec.h"
#include "softcx/hw/hw.h"
#include "softcx/hw/inflight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The segments of a UMR WQE, in bytes from its start (rdma-core providers/mlx5/mlx5dv.h, struct
 * mlx5_wqe_umr_ctrl_seg and mlx5_wqe_mkey_context_seg).
 */

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

static int mkey_check(const struct hw_mkey_attr *attr)
{
	const struct hw_mem *mem = attr->mem;

	if (!mem || attr->mem_off > mem->len || attr->len > mem->len - attr->mem_off)
		return -EINVAL;
	if ((attr->access & (HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_ATOMIC)) && !mem->writable)
		return -EACCES;
	/* IB: remote write and atomic rights need the local write right */
	return (attr->access & (HW_REMOTE_WRITE | HW_REMOTE_ATOMIC)) && !(attr->access & HW_LOCAL_WRITE)
		       ? -EINVAL
		       : 0;
}

/* The caller has counted the PD as used. */
static void mkey_fill(struct hw_dev *dev, struct hw_mkey *k, const struct hw_mkey_attr *attr)
{
	struct hw_mem *mem = attr->mem;

	k->pdn = k->owner = attr->pdn;
	k->iova = attr->iova;
	k->len = attr->len;
	k->access = attr->access;
	k->remote_inval = attr->remote_inval;
	k->host = mem->host ? mem->host + attr->mem_off : NULL;
	k->va = mem->va + attr->mem_off;
	k->mem = hw_mem_get(mem);
	dev->mems++;
}

/* A new key without memory. 0, -EINVAL: no such PD, -ENOMEM, -ENOSPC. */
static int mkey_new(struct hw_dev *dev, uint32_t pdn, uint8_t variant, struct hw_mkey **out)
{
	struct hw_mkey *k = calloc(1, sizeof(*k));
	uint32_t index;
	int err;

	if (!k)
		return -ENOMEM;
	err = hw_pd_ref(dev, pdn);
	if (!err) {
		err = hw_table_add(&dev->mkeys, k, &index);
		if (err)
			hw_pd_unref(dev, pdn);
	}
	if (err) {
		free(k);
		return err;
	}
	k->key = index << 8 | variant;
	k->pdn = k->owner = pdn;
	*out = k;
	return 0;
}

int hw_mkey_create(struct hw_dev *dev, const struct hw_mkey_attr *attr, uint32_t *key)
{
	struct hw_mkey *k;
	int err = mkey_check(attr);

	if (!err)
		err = mkey_new(dev, attr->pdn, attr->has_variant ? attr->variant : ++dev->key_variant, &k);
	if (err)
		return err;
	mkey_fill(dev, k, attr);
	*key = k->key;
	return 0;
}

int hw_mkey_change(struct hw_dev *dev, uint32_t key, const struct hw_mkey_attr *attr)
{
	struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);
	struct hw_mem *mem;
	uint32_t pdn;
	int err = mkey_check(attr);

	if (!k || k->key != key || k->window_type || k->pieces)
		return -EINVAL;
	if (k->windows)
		return -EBUSY;
	if (!err)
		err = hw_pd_ref(dev, attr->pdn);
	if (err)
		return err;
	hw_inflight_land_everywhere();
	pdn = k->pdn;
	mem = k->mem;
	mkey_fill(dev, k, attr);
	hw_pd_unref(dev, pdn);
	hw_mem_unpin(dev, mem);
	return 0;
}

/* shows nothing any more */
static void mw_free(struct hw_mkey *window)
{
	if (window->parent)
		window->parent->windows--;
	window->parent = NULL;
	window->mem = NULL;
	window->invalid = true;
	window->owner = hw_mw_owner_pd(window->pdn);
}

int hw_mkey_destroy(struct hw_dev *dev, uint32_t key)
{
	struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);

	if (!k || k->key != key)
		return -EINVAL;
	if (k->windows)
		return -EBUSY;
	hw_inflight_land_everywhere();
	if (k->window_type)
		mw_free(k);
	hw_table_del(&dev->mkeys, key >> 8);
	hw_pd_unref(dev, k->pdn);
	hw_mem_unpin(dev, k->mem);
	free(k);
	return 0;
}

bool hw_key_invalidate(struct hw_dev *dev, uint32_t key, uint32_t pdn, bool remote)
{
	struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);

	if (!k || k->key != key || k->owner != pdn || (remote && !k->remote_inval))
		return false;
	if (k->window_type)
		mw_free(k);
	k->invalid = true;
	return true;
}

/*
 * Memory windows, and the one form of UMR that binds and frees them.
 *
 * The WQE is the one that libmlx5 builds for IBV_WR_BIND_MW and IBV_WR_LOCAL_INV (rdma-core,
 * providers/mlx5/qp.c, set_bind_wr): ctrl with the window's key, a UMR control segment, a context with the
 * changes, and for a bind a KLM segment with the key and the range to show. Only the index of the window's
 * key counts; its variant is set to that of the context. A type 2 window belongs to the queue that bound it
 * (type 2B). Every mistake ends the queue with the syndrome of a failed bind.
 */

enum { KLM = UMR_DATA, BIND_DS = UMR_FREE_DS + 64 / WQE_DS };
enum { REFUSED = HW_FAULT(CQE_SYND_MW_BIND, HW_VENDOR_WQE) };

int hw_mw_create(struct hw_dev *dev, uint32_t pdn, unsigned type, uint32_t *key)
{
	struct hw_mkey *k;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	err = mkey_new(dev, pdn, ++dev->key_variant, &k);
	if (err)
		return err;
	k->owner = hw_mw_owner_pd(pdn);
	k->window_type = (uint8_t)type;
	k->remote_inval = type == 2; /* as Linux has it: hw/mlx5/mr.c, mlx5_ib_alloc_mw */
	k->invalid = true;
	*key = k->key;
	return 0;
}

int hw_mw_destroy(struct hw_dev *dev, uint32_t index)
{
	const struct hw_mkey *k = index >> 24 ? NULL : hw_table_get(&dev->mkeys, index);

	return k && k->window_type ? hw_mkey_destroy(dev, k->key) : -EINVAL;
}

static int mw_bind(const struct hw_wqe *w, struct hw_mkey *window)
{
	uint64_t len = wqe_get64(w->p + CONTEXT_LEN), addr = wqe_get64(w->p + KLM + 8), at;
	uint32_t lkey = wqe_get32(w->p + KLM + 4);
	struct hw_mkey *parent = hw_table_get(&w->qp->dev->mkeys, lkey >> 8);
	unsigned access = umr_rights(w->p[CONTEXT_ACCESS]);

	if (!len || len != wqe_get32(w->p + KLM) || ((w->p[UMR] & UMR_CHECK_FREE) && window->parent))
		return REFUSED;
	if (!parent || parent->key != lkey || parent->window_type || parent->pieces || parent->invalid ||
		parent->pdn != window->pdn)
		return REFUSED;
	at = addr - parent->iova;
	if (at > parent->len || len > parent->len - at)
		return REFUSED;
	/* IB 10.6: remote writes and atomics need a region that may be written */
	if ((access & (HW_REMOTE_WRITE | HW_REMOTE_ATOMIC)) && !(parent->access & HW_LOCAL_WRITE))
		return REFUSED;
	mw_free(window);
	window->parent = parent;
	parent->windows++;
	window->mem = parent->mem;
	window->host = parent->host ? parent->host + at : NULL;
	window->va = parent->va + at;
	window->iova = wqe_get64(w->p + CONTEXT_START);
	window->len = len;
	window->access = access;
	if (window->window_type == 2)
		window->owner = hw_mw_owner_qp(w->qp->qpn);
	window->invalid = false;
	return 0;
}

/* a UMR WQE with a context; 0 or a fault */
static int mw_exec(const struct hw_wqe *w)
{
	struct hw_dev *dev = w->qp->dev;
	uint32_t index = wqe_get32(w->p + WQE_IMM) >> 8;
	struct hw_mkey *window = hw_table_get(&dev->mkeys, index);
	bool binds;
	int ret = 0;

	if (!(w->p[UMR] & UMR_TRANSLATION) || !(w->p[UMR] & UMR_INLINE))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	binds = wqe_get16(w->p + UMR_OCTOWORDS) != 0;
	if (binds && w->ds < BIND_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	if (!window || !window->window_type || window->pdn != w->qp->pdn)
		return REFUSED;
	if ((w->p[UMR] & UMR_CHECK_QPN) && window->parent && window->window_type == 2 &&
		window->owner != hw_mw_owner_qp(w->qp->qpn))
		return REFUSED;
	if (!binds && !(w->p[CONTEXT] & CONTEXT_FREE))
		return REFUSED;
	hw_inflight_land_everywhere();
	if (binds)
		ret = mw_bind(w, window);
	else
		mw_free(window);
	if (!ret)
		window->key = index << 8 | (wqe_get32(w->p + CONTEXT_QPN_KEY) & 0xff);
	return ret;
}

enum { ENTRY = 16, REPEAT_BLOCK = 0x400 }; /* rdma-core, umr_strided_seg_create */

struct hw_pieces {
	struct hw_mem mem; /* of spans over several pieces: its pieces_reach() walks them */
	struct hw_dev *dev;
	uint32_t pdn;
	unsigned n, max;
	uint64_t len;    /* of all pieces, once */
	uint64_t repeat; /* how often they come */
	struct piece {
		uint64_t at; /* of the first byte, in the key or in each repetition */
		uint64_t va;
		uint32_t key, len;
		uint16_t stride; /* from one repetition to the next */
	} piece[];
};

/* ---- translation ------------------------------------------------------------------------ */

/* Where byte @off is: returns how many bytes follow in one piece, 0 beyond the last. */
static uint64_t pieces_find(const struct hw_pieces *p, uint64_t off, uint32_t *key, uint64_t *va)
{
	uint64_t lap = p->len ? off / p->len : p->repeat, rest = p->len ? off % p->len : 0;
	unsigned low = 0, high = p->n;

	*key = 0;
	*va = 0;
	if (lap >= p->repeat)
		return 0;
	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (p->piece[middle].at <= rest)
			low = middle;
		else
			high = middle;
	}
	const struct piece *at = &p->piece[low];

	*key = at->key;
	*va = at->va + lap * at->stride + (rest - at->at);
	return at->len - (rest - at->at);
}

static bool span_at(const struct hw_mkey *k, unsigned access, uint64_t off, uint32_t len, unsigned depth,
	struct hw_span *out);

static bool piece_span(const struct hw_pieces *p, uint32_t key, unsigned access, uint64_t va, uint32_t len,
	unsigned depth, struct hw_span *out)
{
	const struct hw_mkey *k = hw_table_get(&p->dev->mkeys, key >> 8);

	access = access & (HW_LOCAL_WRITE | HW_REMOTE_WRITE | HW_REMOTE_ATOMIC) ? HW_LOCAL_WRITE : 0;
	if (!k || !k->pieces)
		return hw_key_span(p->dev, key, p->pdn, access, va, len, out);
	return depth < HW_INDIRECTIONS && hw_key_covers(k, key, p->pdn, access, va, len) &&
	       span_at(k, access, va - k->iova, len, depth + 1, out);
}

static bool span_at(const struct hw_mkey *k, unsigned access, uint64_t off, uint32_t len, unsigned depth,
	struct hw_span *out)
{
	for (uint32_t done = 0; done < len;) {
		uint32_t key;
		uint64_t va, n = pieces_find(k->pieces, off + done, &key, &va);

		if (n > len - done)
			n = len - done;
		if (!n || !piece_span(k->pieces, key, access, va, (uint32_t)n, depth, out))
			return false;
		if (n == len)
			return true;
		done += (uint32_t)n;
	}
	*out = (struct hw_span){.va = off, .len = len, .mem = &k->pieces->mem};
	return true;
}

bool hw_indirect_span(
	const struct hw_mkey *k, unsigned access, uint64_t off, uint32_t len, struct hw_span *out)
{
	return span_at(k, access, off, len, 1, out);
}

/* Every piece was found when the span was made, and what changes a key lands late effects first. */
static bool pieces_reach(struct hw_mem *mem, uint64_t off, void *buf, size_t len, bool out)
{
	const struct hw_pieces *p = mem->priv;
	uint8_t *at = buf;

	while (len) {
		struct hw_span span;
		uint32_t key;
		uint64_t va, n = pieces_find(p, off, &key, &va);

		if (n > len)
			n = len;
		if (!n || !piece_span(p, key, out ? HW_LOCAL_WRITE : 0, va, (uint32_t)n, 1, &span))
			return false;
		if (out ? !hw_scatter(&span, 1, at, (uint32_t)n) : !hw_gather(at, &span, 1, (uint32_t)n))
			return false;
		at += n;
		off += n;
		len -= n;
	}
	return true;
}

/* ---- keys ------------------------------------------------------------------------------- */

static void pieces_release(struct hw_mem *mem)
{
	free(mem->priv);
}

static struct hw_pieces *pieces_new(struct hw_dev *dev, uint32_t pdn, unsigned max)
{
	struct hw_pieces *p = calloc(1, sizeof(*p) + max * sizeof(p->piece[0]));

	if (!p)
		return NULL;
	p->mem = (struct hw_mem){.len = UINT64_MAX,
		.writable = true,
		.refs = 1,
		.reach = pieces_reach,
		.release = pieces_release,
		.priv = p};
	p->dev = dev;
	p->pdn = pdn;
	p->max = max;
	p->repeat = 1;
	return p;
}

static void pieces_add(struct hw_pieces *p, uint32_t key, uint64_t va, uint32_t len, uint16_t stride)
{
	p->piece[p->n++] = (struct piece){p->len, va, key, len, stride};
	p->len += len;
}

int hw_indirect_create(struct hw_dev *dev, const struct hw_indirect_attr *attr, uint32_t *key)
{
	struct hw_pieces *p;
	struct hw_mkey *k;
	int r;

	if (!attr->max || attr->max > HW_MAX_PIECES || attr->n > attr->max)
		return -EINVAL;
	p = pieces_new(dev, attr->pdn, attr->max);
	if (!p)
		return -ENOMEM;
	for (unsigned i = 0; i < attr->n; i++)
		pieces_add(p, attr->pieces[i].key, attr->pieces[i].va, attr->pieces[i].len, 0);
	r = mkey_new(dev, attr->pdn, attr->variant, &k);
	if (r < 0) {
		hw_mem_put(&p->mem);
		return r;
	}
	k->pieces = p;
	k->mem = &p->mem;
	dev->mems++;
	k->iova = attr->iova;
	k->len = attr->len;
	k->access = attr->access;
	k->remote_inval = attr->remote_inval;
	k->umr = attr->umr;
	k->invalid = attr->free;
	*key = k->key;
	return 0;
}

/* ---- UMR -------------------------------------------------------------------------------- */

/* The entries at @data: a repeat block and what it repeats, or a list that zeros fill up. */
static int set_pieces(struct hw_pieces *p, const uint8_t *data, unsigned entries)
{
	bool strided = wqe_get32(data + 4) == REPEAT_BLOCK;
	unsigned first = strided ? 1 : 0, n = strided ? wqe_get16(data + 14) : entries;

	while (!strided && n && !wqe_get32(data + (n - 1) * ENTRY) && !wqe_get32(data + (n - 1) * ENTRY + 4))
		n--;
	if (n + first > entries || n > p->max)
		return REFUSED;
	p->n = 0;
	p->len = 0;
	p->repeat = strided ? wqe_get32(data + 8) : 1;
	for (unsigned i = first; i < first + n; i++) {
		const uint8_t *e = data + i * ENTRY;

		pieces_add(p, wqe_get32(e + 4), wqe_get64(e + 8), strided ? wqe_get16(e + 2) : wqe_get32(e),
			strided ? wqe_get16(e) : 0);
	}
	return 0;
}

static int umr_configure(const struct hw_wqe *w, struct hw_mkey *k)
{
	static const uint64_t known =
		UMR_SETS_LEN | UMR_SETS_START | UMR_SETS_KEY | UMR_SETS_QPN | UMR_SETS_ACCESS | UMR_SETS_FREE;
	const uint64_t mask = wqe_get64(w->p + UMR_MASK);
	const unsigned entries = wqe_get16(w->p + UMR_OCTOWORDS);
	const uint8_t flags = w->p[UMR];
	int r = 0;

	if (!(flags & UMR_INLINE) || (entries && (flags & UMR_TRANSLATION)) || (mask & ~known) ||
		wqe_get16(w->p + UMR_BSF_OCTOWORDS) || UMR_DATA + entries * ENTRY > w->ds * (unsigned)WQE_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	/* Another variant takes MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG, which is not claimed */
	if ((mask & UMR_SETS_KEY) && ((k->key ^ wqe_get32(w->p + CONTEXT_QPN_KEY)) & 0xff))
		return REFUSED;
	if (!k->umr || k->pdn != w->qp->pdn || ((flags & UMR_CHECK_FREE) && !k->invalid))
		return REFUSED;
	hw_inflight_land_everywhere();
	if (entries)
		r = set_pieces(k->pieces, w->p + UMR_DATA, entries);
	if (r)
		return r;
	if (mask & UMR_SETS_LEN)
		k->len = wqe_get64(w->p + CONTEXT_LEN);
	if (mask & UMR_SETS_START)
		k->iova = wqe_get64(w->p + CONTEXT_START);
	if (mask & UMR_SETS_ACCESS)
		k->access = umr_rights(w->p[CONTEXT_ACCESS]);
	if (mask & UMR_SETS_FREE)
		k->invalid = w->p[CONTEXT] & CONTEXT_FREE;
	return 0;
}

int hw_umr_exec(const struct hw_wqe *w)
{
	struct hw_mkey *k = hw_table_get(&w->qp->dev->mkeys, wqe_get32(w->p + WQE_IMM) >> 8);

	if (w->ds < UMR_FREE_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	return k && k->pieces ? umr_configure(w, k) : mw_exec(w);
}
