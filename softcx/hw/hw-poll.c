/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/hw-cq.h"
#include "softcx/hw/hw-dev.h"
#include "softcx/hw/hw-exec.h"
#include "softcx/hw/hw-qp.h"

/*
 * Where software rings in a UAR page, in 8-byte words (linux/mlx5/doorbell.h; rdma-core mlx5.c): the CQ arm doorbell and two BlueFlame
 * registers of two halves each.
 */
static const unsigned cq_word = 0x20 / 8;
static const unsigned bf_word[] = {0x800 / 8, 0x900 / 8, 0xa00 / 8, 0xb00 / 8};

enum {
	QUIET = 64,     /* scans without a ring after which a page is looked at less often, */
	SELDOM = 16,    /* one scan in 16, */
	MANY_UARS = 32, /* if there are many pages and other work is waiting */
};

static bool rung(uint64_t *word)
{
	if (!__atomic_load_n(word, __ATOMIC_RELAXED))
		return false;
	return __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) != 0;
}

/*
 * A doorbell word says only that something happened on its page: the next ring may have overwritten it. What
 * happened is in the doorbell records, which software stores first.
 */
static bool scan_uar(struct hw_uar *uar)
{
	bool sq = false, any = false;
	struct hw_qp *qp;
	struct hw_cq *cq;

	if (!LIST_EMPTY(&uar->qps))
		for (size_t i = 0; i < sizeof(bf_word) / sizeof(bf_word[0]); i++)
			sq |= rung(&uar->page[bf_word[i]]);
	if (sq) {
		LIST_FOREACH (qp, &uar->qps, of_uar)
			hw_qp_read_sq_doorbell(qp);
		any = true;
	}
	if (!LIST_EMPTY(&uar->cqs) && rung(&uar->page[cq_word])) {
		LIST_FOREACH (cq, &uar->cqs, of_uar)
			hw_cq_check_arm(cq);
		any = true;
	}
	uar->quiet = any ? 0 : uar->quiet + (uar->quiet < QUIET);
	return any;
}

static bool scan_uars(struct hw_dev *dev)
{
	bool any = false, hurry = dev->nready && dev->nuars > MANY_UARS;

	dev->scan_turn++;
	for (unsigned i = 0; i < dev->nuars; i++) {
		struct hw_uar *uar = dev->uar_scan[i];

		if (hurry && uar->quiet == QUIET && (i + dev->scan_turn) % SELDOM)
			continue;
		any |= scan_uar(uar);
	}
	return any;
}

static bool run_timers(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->timed), *next;
	bool any = false;

	for (; qp; qp = next) {
		next = TAILQ_NEXT(qp, run);
		if (qp->due <= dev->now) {
			hw_qp_resume(qp);
			any = true;
		}
	}
	return any;
}

bool hw_poll(struct hw_dev *dev)
{
	bool any;

	dev->now = hw_clock();
	any = scan_uars(dev);
	any |= run_timers(dev);
	any |= hw_cq_timers(dev);
	any |= hw_qp_flush_broken(dev);
	any |= hw_exec_run(dev);
	return any;
}

uint64_t hw_next_timer(const struct hw_dev *dev)
{
	const struct hw_qp *qp;
	const struct hw_cq *cq;
	uint64_t due = UINT64_MAX, now;

	TAILQ_FOREACH (qp, &dev->timed, run)
		if (qp->due < due)
			due = qp->due;
	TAILQ_FOREACH (cq, &dev->moderated, timer)
		if (cq->due < due)
			due = cq->due;
	if (due == UINT64_MAX)
		return due;
	now = hw_clock();
	return due > now ? due - now : 0;
}
