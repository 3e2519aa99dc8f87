/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/dev.h"

#include "mlx5/wqe.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/qp.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct hw_devs hw_devs = LIST_HEAD_INITIALIZER(hw_devs);

/* ---- tables ----------------------------------------------------------------------------- */

/* @t is zeroed. */
static void table_init(struct hw_table *t, uint32_t first, uint32_t span)
{
	t->first = first;
	t->span = span;
}

static void table_deinit(struct hw_table *t)
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

void hw_config_complete(struct hw_config *cfg)
{
	const uint64_t *fact;

	if (!cfg->profile)
		cfg->profile = profile_default();
	fact = cfg->profile->value;
	cfg->no_index_check |= !fact[PROFILE_CHECKS_INDEX];
	cfg->no_qpn_check |= !fact[PROFILE_CHECKS_QPN];
	cfg->no_msg_limit |= !fact[PROFILE_MESSAGE_LIMIT];
	cfg->no_sync_fence |= !fact[PROFILE_SYNC_FENCE];
}

uint64_t hw_fact(const struct hw_dev *dev, enum profile_fact fact)
{
	return dev->cfg.profile->value[fact];
}

int hw_dev_new(struct hw_dev **out, const struct hw_config *cfg, const struct hw_gid *gids, unsigned ngids)
{
	struct hw_dev *dev;

	if (ngids > HW_GIDS)
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->cfg = *cfg;
	hw_config_complete(&dev->cfg);
	dev->max_ds = (uint8_t)(hw_fact(dev, PROFILE_SEND_WQE) / WQE_DS < WQE_MAX_DS
					? hw_fact(dev, PROFILE_SEND_WQE) / WQE_DS
					: WQE_MAX_DS);
	dev->lacking = hw_op_lacking(dev);
	if (hw_clock_new(dev) < 0) {
		free(dev);
		return -ENOMEM;
	}
	hw_dev_seed(dev, cfg->seed);
	memcpy(dev->gid, gids, ngids * sizeof(*gids));
	dev->ngids = ngids;
	/* Different first numbers, so that one kind of number taken for another is found out */
	table_init(&dev->pds, 0x11, 1 << 16);
	table_init(&dev->uars, 0x1, 1 << 16);
	table_init(&dev->mkeys, 0x1800, 1 << 20);
	table_init(&dev->cqs, 0x400, 1 << 18);
	table_init(&dev->qps, 0x90, 1 << 18);
	table_init(&dev->srqs, 0x30, 1 << 16);
	table_init(&dev->rates, 0x5, 1 << 16);
	TAILQ_INIT(&dev->ready);
	TAILQ_INIT(&dev->spent);
	TAILQ_INIT(&dev->timed);
	TAILQ_INIT(&dev->inflight);
	TAILQ_INIT(&dev->broken);
	TAILQ_INIT(&dev->moderated);
	TAILQ_INIT(&dev->awake);
	TAILQ_INIT(&dev->asleep);
	TAILQ_INIT(&dev->faults);
	LIST_INIT(&dev->watches);
	dev->now = clock_ns();
	dev->epoch = clock_read_ns(CLOCK_REALTIME) - dev->now;
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
	table_deinit(&dev->qps);
	table_deinit(&dev->srqs);
	table_deinit(&dev->rates);
	table_deinit(&dev->cqs);
	table_deinit(&dev->mkeys);
	table_deinit(&dev->uars);
	table_deinit(&dev->pds);
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

void hw_clock_read(const struct hw_dev *dev, uint64_t *ticks, uint64_t *ns)
{
	uint64_t now = dev->clock ? 0 : clock_ns();

	*ticks = hw_clock_ticks(now);
	*ns = dev->epoch + now;
}

uint32_t hw_clock_khz(const struct hw_dev *dev)
{
	return dev->clock ? dev->clock->costs->clock_khz : HW_CLOCK_KHZ;
}
