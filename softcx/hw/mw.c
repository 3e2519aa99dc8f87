/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/mw.h"

#include "softcx/hw/inflight.h"
#include "softcx/hw/umr.h"

#include <errno.h>

enum { KLM = UMR_DATA, BIND_DS = UMR_FREE_DS + 64 / WQE_DS };
enum { REFUSED = HW_FAULT(CQE_SYND_MW_BIND, HW_VENDOR_WQE) };

int hw_mw_create(struct hw_dev *dev, uint32_t pdn, unsigned type, uint32_t *key)
{
	struct hw_mkey *k;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	err = hw_mkey_new(dev, pdn, ++dev->key_variant, &k);
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

void hw_mw_free(struct hw_mkey *window)
{
	if (window->parent)
		window->parent->windows--;
	window->parent = NULL;
	window->mem = NULL;
	window->invalid = true;
	window->owner = hw_mw_owner_pd(window->pdn);
}

static int bind(const struct hw_wqe *w, struct hw_mkey *window)
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
		ret = bind(w, window);
	else
		hw_mw_free(window);
	if (!ret)
		window->key = index << 8 | (wqe_get32(w->p + CONTEXT_QPN_KEY) & 0xff);
	return ret;
}
