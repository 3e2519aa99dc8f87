/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hw_devs hw_devs = LIST_HEAD_INITIALIZER(hw_devs);

/* ---- tables ----------------------------------------------------------------------------- */

void hw_table_init(struct hw_table *t, uint32_t first, uint32_t span)
{
	t->first = first;
	t->span = span;
}

void hw_table_deinit(struct hw_table *t)
{
	for (uint32_t i = t->first >> 12; i <= (t->first + t->span - 1) >> 12; i++)
		free(t->page[i]);
}

int hw_table_add(struct hw_table *t, void *obj, uint32_t *id)
{
	if (t->live >= t->span)
		return -ENOSPC;
	for (;;) {
		uint32_t n = t->first + t->next;
		void ***page = &t->page[n >> 12];

		t->next = (t->next + 1) % t->span;
		if (!*page) {
			*page = calloc(4096, sizeof(void *));
			if (!*page)
				return -ENOMEM;
		}
		if ((*page)[n & 0xfff])
			continue;
		(*page)[n & 0xfff] = obj;
		t->live++;
		*id = n;
		return 0;
	}
}

void hw_table_del(struct hw_table *t, uint32_t id)
{
	t->page[id >> 12][id & 0xfff] = NULL;
	t->live--;
}

void hw_table_each(struct hw_table *t, struct hw_dev *dev, void (*fn)(struct hw_dev *, void *))
{
	for (uint32_t n = t->first; t->live && n < t->first + t->span; n++) {
		void *obj;

		if (!t->page[n >> 12]) {
			n |= 0xfff;
			continue;
		}
		obj = hw_table_get(t, n);
		if (obj)
			fn(dev, obj);
	}
}

/* ---- memory ----------------------------------------------------------------------------- */

struct hw_mem *hw_mem_get(struct hw_mem *mem)
{
	mem->refs++;
	return mem;
}

void hw_mem_put(struct hw_mem *mem)
{
	if (mem && --mem->refs == 0)
		mem->release(mem);
}

void *hw_mem_pin(struct hw_dev *dev, struct hw_mem *mem, uint64_t off, uint64_t len, uint64_t align)
{
	if (!mem || !mem->host || off > mem->len || len > mem->len - off)
		return NULL;
	if ((uintptr_t)(mem->host + off) & (align - 1))
		return NULL;
	hw_mem_get(mem);
	dev->mems++;
	return mem->host + off;
}

void hw_mem_unpin(struct hw_dev *dev, struct hw_mem *mem)
{
	if (!mem)
		return;
	hw_mem_put(mem);
	dev->mems--;
}

/* ---- device ----------------------------------------------------------------------------- */

void hw_dev_seed(struct hw_dev *dev, uint64_t seed)
{
	/* xorshift needs a state other than 0; the constant spreads small seeds */
	dev->rng = (seed + 1) * 0x9e3779b97f4a7c15u;
	if (!dev->rng)
		dev->rng = 1;
}

bool hw_port_up(const struct hw_dev *dev)
{
	return !dev->port_down;
}

void hw_dev_watch(struct hw_dev *dev, struct hw_dev_watch *watch)
{
	LIST_INSERT_HEAD(&dev->watches, watch, link);
}

void hw_dev_unwatch(struct hw_dev_watch *watch)
{
	LIST_REMOVE(watch, link);
}

void hw_dev_event(struct hw_dev *dev, int event)
{
	struct hw_dev_watch *watch;

	LIST_FOREACH (watch, &dev->watches, link)
		watch->on_event(watch->arg, event);
}

void hw_set_trace(struct hw_dev *dev, hw_trace_fn fn, void *arg)
{
	dev->trace = fn;
	dev->trace_arg = arg;
}

bool hw_has_gid(const struct hw_dev *dev, const uint8_t gid[16])
{
	for (unsigned i = 0; i < dev->ngids; i++)
		if (memcmp(dev->gid[i].raw, gid, 16) == 0)
			return true;
	return false;
}

struct hw_dev *hw_dev_by_gid(const uint8_t gid[16])
{
	struct hw_dev *dev;

	LIST_FOREACH (dev, &hw_devs, all)
		if (hw_has_gid(dev, gid))
			return dev;
	return NULL;
}

struct hw_dev *hw_dev_by_lid(uint16_t lid)
{
	struct hw_dev *dev;

	LIST_FOREACH (dev, &hw_devs, all)
		if (hw_is_infiniband(dev) && dev->cfg.lid == lid)
			return dev;
	return NULL;
}

bool hw_is_infiniband(const struct hw_dev *dev)
{
	return hw_fact(dev, PROFILE_LINK) == PROFILE_INFINIBAND;
}

uint16_t hw_lid(const struct hw_dev *dev)
{
	return dev->cfg.lid;
}

bool hw_gid(const struct hw_dev *dev, unsigned index, uint8_t gid[16])
{
	if (index >= dev->ngids)
		return false;
	memcpy(gid, dev->gid[index].raw, 16);
	return true;
}

bool hw_gid_is_v1(const struct hw_dev *dev, unsigned index)
{
	return index < dev->ngids && dev->gid[index].roce_v1;
}

/* ---- protection domains ----------------------------------------------------------------- */

int hw_pd_alloc(struct hw_dev *dev, uint32_t *pdn)
{
	struct hw_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd)
		return -ENOMEM;
	err = hw_table_add(&dev->pds, pd, &pd->pdn);
	if (err) {
		free(pd);
		return err;
	}
	*pdn = pd->pdn;
	return 0;
}

int hw_pd_free(struct hw_dev *dev, uint32_t pdn)
{
	struct hw_pd *pd = hw_table_get(&dev->pds, pdn);

	if (!pd)
		return -EINVAL;
	if (pd->refs)
		return -EBUSY;
	hw_table_del(&dev->pds, pdn);
	free(pd);
	return 0;
}

int hw_pd_ref(struct hw_dev *dev, uint32_t pdn)
{
	struct hw_pd *pd = hw_table_get(&dev->pds, pdn);

	if (!pd)
		return -EINVAL;
	pd->refs++;
	return 0;
}

void hw_pd_unref(struct hw_dev *dev, uint32_t pdn)
{
	struct hw_pd *pd = hw_table_get(&dev->pds, pdn);

	pd->refs--;
}
