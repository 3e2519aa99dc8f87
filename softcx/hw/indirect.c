/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/indirect.h"

#include "softcx/hw/inflight.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/mw.h"
#include "softcx/hw/umr.h"

#include <errno.h>
#include <stdlib.h>

enum { REFUSED = HW_FAULT(CQE_SYND_MW_BIND, HW_VENDOR_WQE) };
enum { ENTRY = 16, REPEAT_BLOCK = 0x400 }; /* rdma-core, umr_strided_seg_create */

struct hw_pieces {
	struct hw_mem mem; /* of spans over several pieces: its reach() walks them */
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
static uint64_t find(const struct hw_pieces *p, uint64_t off, uint32_t *key, uint64_t *va)
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
		uint64_t va, n = find(k->pieces, off + done, &key, &va);

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
static bool reach(struct hw_mem *mem, uint64_t off, void *buf, size_t len, bool out)
{
	const struct hw_pieces *p = mem->priv;
	uint8_t *at = buf;

	while (len) {
		struct hw_span span;
		uint32_t key;
		uint64_t va, n = find(p, off, &key, &va);

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

static void release(struct hw_mem *mem)
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
		.reach = reach,
		.release = release,
		.priv = p};
	p->dev = dev;
	p->pdn = pdn;
	p->max = max;
	p->repeat = 1;
	return p;
}

static void add(struct hw_pieces *p, uint32_t key, uint64_t va, uint32_t len, uint16_t stride)
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
		add(p, attr->pieces[i].key, attr->pieces[i].va, attr->pieces[i].len, 0);
	r = hw_mkey_new(dev, attr->pdn, attr->variant, &k);
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

		add(p, wqe_get32(e + 4), wqe_get64(e + 8), strided ? wqe_get16(e + 2) : wqe_get32(e),
			strided ? wqe_get16(e) : 0);
	}
	return 0;
}

static int configure(const struct hw_wqe *w, struct hw_mkey *k)
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
	return k && k->pieces ? configure(w, k) : hw_mw_exec(w);
}
