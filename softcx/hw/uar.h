/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uar.h - doorbell pages: their memory, their queues, and their sleep. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_UAR_H
#define SOFTCX_HW_UAR_H

#include "softcx/hw/dev.h"

#include <stdbool.h>

TAILQ_HEAD(hw_uar_qps, hw_qp);
TAILQ_HEAD(hw_uar_cqs, hw_cq);

enum {
	HW_UAR_MIN_STEP = 2, /* of a scan */
	HW_UAR_LOOKS = 64,   /* at pages that sleep, in a check: each is a system call */
};

/** Progress through the queues that may have rung unseen. */
struct hw_uar_round {
	unsigned of;   /* queues in the list */
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
	unsigned queues;
	struct hw_uar_qps qps; /* whose doorbell records are read: not the managed ones */
	struct hw_uar_cqs cqs; /* with CQEs since their last event: arming another does nothing yet */
	struct hw_uar_round sq, arm;
	struct hw_qp *next_qp; /* where the round goes on; NULL: at the beginning */
	struct hw_cq *next_cq;
	TAILQ_ENTRY(hw_uar) link; /* dev->awake or dev->asleep */
};

/** The same, unless the page shows a later time already. */
void hw_uar_show_time(struct hw_uar *uar, uint64_t ticks);

void hw_uar_add_qp(struct hw_uar *uar, struct hw_qp *qp);
void hw_uar_remove_qp(struct hw_qp *qp);
void hw_uar_add_cq(struct hw_uar *uar, struct hw_cq *cq);
void hw_uar_remove_cq(struct hw_cq *cq);
/** The CQ has CQEs that no event announced, so arming it may fire; or it has none any more. */
void hw_uar_list_cq(struct hw_cq *cq);
void hw_uar_unlist_cq(struct hw_cq *cq);

/*
 * Notices which queues software rang.
 *
 * A word that software stored names the queue that rang last. Others on the page may have rung before it, and
 * their words are overwritten; but software stores the doorbell record first, and records are not lost. So a
 * scan reads the record of the named queue at once and then those of others on the page, a few at a time:
 * a ring costs the same however many queues share the page. When such a read finds something, the steps
 * become larger.
 *
 * Those that a record of can change nothing are left out: managed SQs, and CQs without a CQE since their last
 * event, which the next CQE looks at. A server has thousands of these on one page, and few others.
 */

/** Looks at all pages that are awake, and sends quiet ones to sleep. True: something rang or may have. */
bool hw_doorbell_scan(struct hw_dev *dev);

#endif
