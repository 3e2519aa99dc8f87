/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/doorbell.h"

#include "softcx/hw/cq.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/uar.h"
#include "util/array.h"

enum {
	WQES_PER_LOOK = 8, /* and more when much is executed between two scans: they come more seldom then */
	MAX_STEP = 1024,
	ALL_AT_ONCE = 64, /* pages awake, above which quiet ones wait for their turn when there is work */
};
static const uint64_t bedtime_ns = 20000000;

/*
 * Where software rings in a UAR page, in 8-byte words (linux/mlx5/doorbell.h; rdma-core mlx5.c): the CQ arm
 * doorbell and two BlueFlame registers of two halves each.
 */
static const unsigned cq_word = 0x20 / 8;
static const unsigned bf_word[] = {0x800 / 8, 0x900 / 8, 0xa00 / 8, 0xb00 / 8};

static uint64_t take(uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED) ? __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) : 0;
}

/* The number in the upper 24 bits of the second big-endian half (QPN and DS), or in the lower ones (CQN). */
static uint32_t second_half(uint64_t word)
{
	return (uint32_t)be64toh(word);
}

/* How many to look at in this scan. */
static unsigned portion(const struct hw_uar *uar, struct hw_uar_round *r)
{
	unsigned step = uar->dev->wqes_between_scans / WQES_PER_LOOK;

	if (step < r->step)
		step = r->step;
	if (r->left > r->of)
		r->left = r->of; /* some have left the list */
	return r->left < step ? r->left : step;
}

static void portion_done(struct hw_uar_round *r, unsigned looked, bool found)
{
	r->left -= looked;
	if (found)
		r->step = r->step * 2 < MAX_STEP ? r->step * 2 : MAX_STEP;
	else if (looked && r->step > HW_UAR_MIN_STEP)
		r->step--;
}

static void look_at_qps(struct hw_uar *uar)
{
	unsigned n = portion(uar, &uar->sq);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		struct hw_qp *qp = uar->next_qp ? uar->next_qp : TAILQ_FIRST(&uar->qps);
		uint16_t before = qp->sq_pi;

		uar->next_qp = TAILQ_NEXT(qp, of_uar);
		hw_qp_read_sq_doorbell(qp);
		found |= qp->sq_pi != before;
	}
	portion_done(&uar->sq, n, found);
}

static void look_at_cqs(struct hw_uar *uar)
{
	unsigned n = portion(uar, &uar->arm);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		struct hw_cq *cq = uar->next_cq ? uar->next_cq : TAILQ_FIRST(&uar->cqs);
		uint32_t before = cq->arm_word;

		uar->next_cq = TAILQ_NEXT(cq, of_uar);
		hw_cq_check_arm(cq);
		found |= cq->arm_word != before;
	}
	portion_done(&uar->arm, n, found);
}

static bool scan(struct hw_uar *uar)
{
	bool any = false;
	uint64_t word;

	for (size_t i = 0; i < COUNT(bf_word); i++) {
		struct hw_qp *qp;

		word = take(&uar->page[bf_word[i]]);
		if (!word)
			continue;
		any = true;
		uar->dev->total.rings++;
		uar->sq.left = uar->sq.of;
		qp = hw_qp_find(uar->dev, second_half(word) >> 8);
		if (qp && qp->uar == uar)
			hw_qp_rung(qp);
	}
	word = take(&uar->page[cq_word]);
	if (word) {
		struct hw_cq *cq = hw_cq_find(uar->dev, second_half(word) & 0xffffff);

		any = true;
		uar->dev->total.rings++;
		uar->arm.left = uar->arm.of;
		if (cq && cq->uar == uar)
			hw_cq_check_arm(cq);
	}
	if (uar->sq.left) {
		look_at_qps(uar);
		any = true;
	}
	if (uar->arm.left) {
		look_at_cqs(uar);
		any = true;
	}
	return any;
}

/*
 * After the page has gone every store faults. Rings before that show in the doorbell records, as software
 * orders its stores. So nothing is lost, whatever was in the page.
 */
static void fall_asleep(struct hw_uar *uar)
{
	struct hw_qp *qp;
	struct hw_cq *cq, *next;

	if (!hw_uar_sleep(uar))
		return;
	TAILQ_FOREACH (qp, &uar->qps, of_uar)
		hw_qp_read_sq_doorbell(qp);
	for (cq = TAILQ_FIRST(&uar->cqs); cq; cq = next) {
		next = TAILQ_NEXT(cq, of_uar);
		hw_cq_check_arm(cq);
	}
}

bool hw_doorbell_scan(struct hw_dev *dev)
{
	bool any = false, hurry = dev->nready && dev->nawake > ALL_AT_ONCE;
	struct hw_uar *uar = TAILQ_FIRST(&dev->awake), *next;
	unsigned most = hurry ? ALL_AT_ONCE : dev->nawake;

	dev->wqes_between_scans = (unsigned)(dev->total.wqes - dev->wqes_at_scan);
	dev->wqes_at_scan = dev->total.wqes;
	for (unsigned i = 0; i < most && uar; i++, uar = next) {
		next = TAILQ_NEXT(uar, link);
		if (uar->kind == HW_UAR_TIME) {
			hw_uar_set_time(uar, hw_clock_ticks(dev->now));
		} else if (scan(uar)) {
			any = true;
			uar->rung_at = dev->now;
			continue;
		}
		if (uar->mappings && uar->guarded == uar->mappings && dev->now - uar->rung_at > bedtime_ns) {
			fall_asleep(uar);
			continue;
		}
		/* those that ring stay in front */
		if (hurry) {
			TAILQ_REMOVE(&dev->awake, uar, link);
			TAILQ_INSERT_TAIL(&dev->awake, uar, link);
		}
	}
	return any;
}
