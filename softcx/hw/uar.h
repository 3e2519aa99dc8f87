/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uar.h - doorbell pages: which queues rang. Internal to softcx/hw.
 *
 * A word that software stored names the queue that rang last. Others on the page may have rung before it, and
 * their words are overwritten; but software stores the doorbell record first, and records are not lost. So a
 * scan reads the record of the named queue at once and then those of all others on the page, a few at a time:
 * a ring costs the same however many queues share the page. When such a read finds something, the steps
 * become larger.
 */
#ifndef SOFTCX_HW_UAR_H
#define SOFTCX_HW_UAR_H

#include "softcx/hw/cq.h"
#include "softcx/hw/qp.h"

TAILQ_HEAD(hw_uar_qps, hw_qp);
TAILQ_HEAD(hw_uar_cqs, hw_cq);

/** Progress through the queues that may have rung unseen. */
struct hw_uar_round {
	unsigned of;   /* queues of the page */
	unsigned left; /* to look at */
	unsigned step; /* how many of them in one scan */
};

struct hw_uar {
	struct hw_dev *dev;
	uint64_t *page; /* shared with applications; not to be touched while asleep */
	uint32_t index;
	int fd;
	bool asleep;
	enum { HW_UAR_RINGS, HW_UAR_TIME, HW_UAR_MODELLED } kind; /* the last one is on neither list */
	unsigned mappings, guarded;                               /* the latter of the former */
	LIST_HEAD(, hw_uar_guard) guards;
	uint64_t rung_at; /* ns; also when it woke */
	struct hw_uar_qps qps;
	struct hw_uar_cqs cqs;
	struct hw_uar_round sq, arm;
	struct hw_qp *next_qp; /* where the round goes on; NULL: at the beginning */
	struct hw_cq *next_cq;
	TAILQ_ENTRY(hw_uar) link; /* dev->awake or dev->asleep */
};

/** On a page that shows a modelled time: never goes back. */
void hw_uar_show_time(struct hw_uar *uar, uint64_t ticks);

void hw_uar_add_qp(struct hw_uar *uar, struct hw_qp *qp);
void hw_uar_remove_qp(struct hw_qp *qp);
void hw_uar_add_cq(struct hw_uar *uar, struct hw_cq *cq);
void hw_uar_remove_cq(struct hw_cq *cq);

/** Looks at all pages that are awake, and sends quiet ones to sleep. True: something rang or may have. */
bool hw_uar_scan(struct hw_dev *dev);

#endif
