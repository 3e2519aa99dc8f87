/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/mem.h"

#include "softcx/hw/inflight.h"
#include "softcx/hw/mw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check(const struct hw_mkey_attr *attr)
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
static void fill(struct hw_dev *dev, struct hw_mkey *k, const struct hw_mkey_attr *attr)
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

int hw_mkey_new(struct hw_dev *dev, uint32_t pdn, uint8_t variant, struct hw_mkey **out)
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
	int err = check(attr);

	if (!err)
		err = hw_mkey_new(dev, attr->pdn, attr->has_variant ? attr->variant : ++dev->key_variant, &k);
	if (err)
		return err;
	fill(dev, k, attr);
	*key = k->key;
	return 0;
}

int hw_mkey_change(struct hw_dev *dev, uint32_t key, const struct hw_mkey_attr *attr)
{
	struct hw_mkey *k = hw_table_get(&dev->mkeys, key >> 8);
	struct hw_mem *mem;
	uint32_t pdn;
	int err = check(attr);

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
	fill(dev, k, attr);
	hw_pd_unref(dev, pdn);
	hw_mem_unpin(dev, mem);
	return 0;
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
		hw_mw_free(k);
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
		hw_mw_free(k);
	k->invalid = true;
	return true;
}
