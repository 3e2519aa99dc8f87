/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/mw.h"

#include "softcx/hw/inflight.h"

#include <errno.h>
#include <stdlib.h>

/* Segments of the WQE, bytes from its start */
enum {
	UMR = 16,
	UMR_OCTOWORDS = UMR + 4,
	CONTEXT = UMR + 48,
	CONTEXT_ACCESS = CONTEXT + 2,
	CONTEXT_QPN_KEY = CONTEXT + 4,
	CONTEXT_START = CONTEXT + 16,
	CONTEXT_LEN = CONTEXT + 24,
	KLM = CONTEXT + 64,
	FREE_DS = KLM / WQE_DS,
	BIND_DS = FREE_DS + 64 / WQE_DS,
};
enum { CHECK_QPN = 1 << 3, TRANSLATION = 1 << 4, CHECK_FREE = 1 << 5, INLINE = 1 << 7 };     /* UMR flags */
enum { CONTEXT_FREE = 1 << 6 };                                                              /* byte 0 */
enum { LOCAL_WRITE = 1 << 3, REMOTE_READ = 1 << 4, REMOTE_WRITE = 1 << 5, ATOMIC = 1 << 6 }; /* access */
enum { REFUSED = HW_FAULT(CQE_SYND_MW_BIND, HW_VENDOR_WQE) };

int hw_mw_create(struct hw_dev *dev, uint32_t pdn, unsigned type, uint32_t *key)
{
	struct hw_mkey *k;
	uint32_t index;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	k = calloc(1, sizeof(*k));
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
	k->key = index << 8 | ++dev->key_variant;
	k->pdn = pdn;
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

void hw_mw_free(struct hw_mkey *window)
{
	if (window->parent)
		window->parent->windows--;
	window->parent = NULL;
	window->mem = NULL;
	window->invalid = true;
	window->owner = hw_mw_owner_pd(window->pdn);
}

static unsigned rights(uint8_t flags)
{
	return (flags & LOCAL_WRITE ? HW_LOCAL_WRITE : 0) | (flags & REMOTE_READ ? HW_REMOTE_READ : 0) |
	       (flags & REMOTE_WRITE ? HW_REMOTE_WRITE : 0) | (flags & ATOMIC ? HW_REMOTE_ATOMIC : 0);
}

static int bind(const struct hw_wqe *w, struct hw_mkey *window)
{
	uint64_t len = wqe_get64(w->p + CONTEXT_LEN), addr = wqe_get64(w->p + KLM + 8), at;
	uint32_t lkey = wqe_get32(w->p + KLM + 4);
	struct hw_mkey *parent = hw_table_get(&w->qp->dev->mkeys, lkey >> 8);
	unsigned access = rights(w->p[CONTEXT_ACCESS]);

	if (!len || len != wqe_get32(w->p + KLM) || ((w->p[UMR] & CHECK_FREE) && window->parent))
		return REFUSED;
	if (!parent || parent->key != lkey || parent->window_type || parent->invalid ||
		parent->pdn != window->pdn)
		return REFUSED;
	at = addr - parent->iova;
	if (at > parent->len || len > parent->len - at)
		return REFUSED;
	/* IB 10.6: remote writes and atomics need a region that may be written */
	if ((access & (HW_REMOTE_WRITE | HW_REMOTE_ATOMIC)) && !(parent->access & HW_LOCAL_WRITE))
		return REFUSED;
	hw_mw_free(window);
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

int hw_mw_exec(const struct hw_wqe *w)
{
	struct hw_dev *dev = w->qp->dev;
	uint32_t index = wqe_get32(w->p + WQE_IMM) >> 8;
	struct hw_mkey *window = hw_table_get(&dev->mkeys, index);
	bool binds;
	int ret = 0;

	if (w->ds < FREE_DS || !(w->p[UMR] & TRANSLATION) || !(w->p[UMR] & INLINE))
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	binds = wqe_get16(w->p + UMR_OCTOWORDS) != 0;
	if (binds && w->ds < BIND_DS)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	if (!window || !window->window_type || window->pdn != w->qp->pdn)
		return REFUSED;
	if ((w->p[UMR] & CHECK_QPN) && window->parent && window->window_type == 2 &&
		window->owner != hw_mw_owner_qp(w->qp->qpn))
		return REFUSED;
	if (!binds && !(w->p[CONTEXT] & CONTEXT_FREE))
		return REFUSED;
	hw_inflight_land_everywhere();
	if (binds)
		ret = bind(w, window);
	else
		hw_mw_free(window);
	if (!ret)
		window->key = index << 8 | (wqe_get32(w->p + CONTEXT_QPN_KEY) & 0xff);
	return ret;
}
