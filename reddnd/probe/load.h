/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - work for the device beside a check: queue pairs that READ and WRITE through it, so that its units
 * have other queues to turn to and data arrive late.
 */
#ifndef PROBE_LOAD_H
#define PROBE_LOAD_H

#include "reddnd/rnic/qp.h"

enum { LOAD_QUEUES = 4 };

struct load {
	struct rnic_block block;
	struct rnic_cq cq[LOAD_QUEUES];
	struct rnic_qp qp[LOAD_QUEUES];
	unsigned batches[LOAD_QUEUES]; /* posted; each has a CQE at its begin and at its end */
};

/** 0 or a negative errno; load_deinit() in either case. */
int load_init(struct load *load, struct rnic_pd *pd, struct rnic_arena *arena);
void load_deinit(struct load *load);

/** Posts work on the queues that have none left. */
void load_feed(struct load *load);
/** The CQE, of load->cq[0], with which the work of the next load_feed() begins; if there is work left, one
 * that has been. */
uint32_t load_begin(const struct load *load);
/** True if a queue was still at work at the time of that CQE. */
bool load_covers(const struct load *load, const struct rnic_cqe *cqe);

#endif
