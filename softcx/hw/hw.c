/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/clock.h"
#include "softcx/hw/cq.h"
#include "softcx/hw/dev.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/srq.h"
#include "softcx/hw/uar.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct hw_devs hw_devs = LIST_HEAD_INITIALIZER(hw_devs);

/* ---- tables ----------------------------------------------------------------------------- */

void hw_table_init(struct hw_table *t, uint32_t first, uint32_t span)
{
	memset(t, 0, sizeof(*t));
	t->first = first;
	t->span = span;
}

void hw_table_deinit(struct hw_table *t)
{
	for (size_t i = 0; i < COUNT(t->page); i++)
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

int hw_dev_new(struct hw_dev **out, const struct hw_config *cfg, const uint8_t (*gids)[16], unsigned ngids)
{
	struct hw_dev *dev;

	if (ngids > 16)
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->cfg = *cfg;
	if (hw_clock_new(dev) < 0) {
		free(dev);
		return -ENOMEM;
	}
	hw_dev_seed(dev, cfg->seed);
	memcpy(dev->gid, gids, ngids * 16);
	dev->ngids = ngids;
	/* Different first numbers, so that one kind of number taken for another is found out */
	hw_table_init(&dev->pds, 0x11, 1 << 16);
	hw_table_init(&dev->uars, 0x1, 1 << 16);
	hw_table_init(&dev->mkeys, 0x1800, 1 << 20);
	hw_table_init(&dev->cqs, 0x400, 1 << 18);
	hw_table_init(&dev->qps, 0x90, 1 << 18);
	hw_table_init(&dev->srqs, 0x30, 1 << 16);
	hw_table_init(&dev->rates, 0x5, 1 << 16);
	TAILQ_INIT(&dev->ready);
	TAILQ_INIT(&dev->timed);
	TAILQ_INIT(&dev->inflight);
	TAILQ_INIT(&dev->broken);
	TAILQ_INIT(&dev->moderated);
	TAILQ_INIT(&dev->awake);
	TAILQ_INIT(&dev->asleep);
	TAILQ_INIT(&dev->faults);
	LIST_INIT(&dev->watches);
	dev->now = clock_ns();
	LIST_INSERT_HEAD(&hw_devs, dev, all);
	*out = dev;
	return 0;
}

static void free_qp(struct hw_dev *dev, void *qp)
{
	hw_qp_destroy(dev, qp);
}

static void free_srq(struct hw_dev *dev, void *srq)
{
	hw_srq_destroy(dev, srq);
}

static void free_cq(struct hw_dev *dev, void *cq)
{
	hw_cq_destroy(dev, cq);
}

static void free_mkey(struct hw_dev *dev, void *mkey)
{
	hw_mkey_destroy(dev, ((struct hw_mkey *)mkey)->key);
}

static void free_uar(struct hw_dev *dev, void *uar)
{
	hw_uar_free(dev, uar);
}

static void free_pd(struct hw_dev *dev, void *pd)
{
	hw_pd_free(dev, ((struct hw_pd *)pd)->pdn);
}

/* Refused while something is inside: those go first, and the next round takes it. */
static void free_rate(struct hw_dev *dev, void *rate)
{
	hw_rate_destroy(dev, rate);
}

static void forget_peer(struct hw_dev *gone, void *obj)
{
	struct hw_qp *qp = obj;

	if (qp->peer_dev == gone)
		qp->peer_dev = NULL;
}

void hw_dev_free(struct hw_dev *dev)
{
	struct hw_dev *other;

	if (!dev)
		return;
	LIST_FOREACH (other, &hw_devs, all)
		hw_table_each(&other->qps, dev, forget_peer);
	hw_table_each(&dev->qps, dev, free_qp);
	while (dev->rates.live)
		hw_table_each(&dev->rates, dev, free_rate);
	hw_table_each(&dev->srqs, dev, free_srq);
	hw_table_each(&dev->cqs, dev, free_cq);
	while (dev->mkeys.live)
		hw_table_each(&dev->mkeys, dev, free_mkey);
	hw_table_each(&dev->uars, dev, free_uar);
	hw_table_each(&dev->pds, dev, free_pd);
	LIST_REMOVE(dev, all);
	hw_fault_clear(dev, 0);
	hw_table_deinit(&dev->qps);
	hw_table_deinit(&dev->srqs);
	hw_table_deinit(&dev->rates);
	hw_table_deinit(&dev->cqs);
	hw_table_deinit(&dev->mkeys);
	hw_table_deinit(&dev->uars);
	hw_table_deinit(&dev->pds);
	hw_clock_free(dev);
	free(dev);
}

void hw_counts(const struct hw_dev *dev, struct hw_counts *out)
{
	*out = dev->total;
	out->pds = dev->pds.live;
	out->mkeys = dev->mkeys.live;
	out->uars = dev->uars.live;
	out->uars_asleep = dev->uars.live - (dev->nawake - dev->ntimes_awake);
	out->cqs = dev->cqs.live;
	out->qps = dev->qps.live;
	out->srqs = dev->srqs.live;
	out->rates = dev->rates.live;
	out->mems = dev->mems;
}

uint32_t hw_clock_khz(const struct hw_dev *dev)
{
	return dev->clock ? dev->clock->costs->clock_khz : HW_CLOCK_KHZ;
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

struct hw_dev *hw_dev_by_gid(const uint8_t gid[16])
{
	struct hw_dev *dev;

	LIST_FOREACH (dev, &hw_devs, all)
		for (unsigned i = 0; i < dev->ngids; i++)
			if (memcmp(dev->gid[i], gid, 16) == 0)
				return dev;
	return NULL;
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
