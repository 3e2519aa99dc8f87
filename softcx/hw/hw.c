/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/wqe.h"
#include "softcx/hw/clock.h"
#include "softcx/hw/cq.h"
#include "softcx/hw/dev.h"
#include "softcx/hw/fault.h"
#include "softcx/hw/mem.h"
#include "softcx/hw/op.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/srq.h"
#include "softcx/hw/uar.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
	hw_table_init(&dev->pds, 0x11, 1 << 16);
	hw_table_init(&dev->uars, 0x1, 1 << 16);
	hw_table_init(&dev->mkeys, 0x1800, 1 << 20);
	hw_table_init(&dev->cqs, 0x400, 1 << 18);
	hw_table_init(&dev->qps, 0x90, 1 << 18);
	hw_table_init(&dev->srqs, 0x30, 1 << 16);
	hw_table_init(&dev->rates, 0x5, 1 << 16);
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
