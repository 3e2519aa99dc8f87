/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns.h - which of the send queues that can execute has the next turn. Internal to softcx/hw.
 *
 * No source describes the scheduler of the silicon; scheduling elements have weights of a round-robin
 * (bw_share of rdma-core mlx5dv_sched_*). This one is start-time fair queueing (Goyal, Vin, Cheng: SIGCOMM
 * 1996) with two lists in place of a sorted one. A queue pays for what it executes. Its account never falls
 * behind the *round*, that of the queue which went on last, so rest is not saved up. While it is less than a
 * share ahead, the queue is on dev->ready and comes before those that have had their share, on dev->spent.
 * When there are only these, the first one has the next share, and the round is where it is. So
 *
 * - a queue that has rested executes a few WQEs at once, however much others have to do;
 * - one that always has more to do gets a share whenever each other has had one;
 * - nothing waits while nothing else is to be done.
 *
 * A message longer than what is left of the share ends its turn in the middle (segment.h), so that shares are
 * equal in bytes, however long messages are.
 *
 * With a modelled clock the order is that of its time, and all queues are on dev->ready.
 */
#ifndef SOFTCX_HW_TURNS_H
#define SOFTCX_HW_TURNS_H

#include "softcx/hw/qp.h"

enum {
	HW_SHARE = 32,      /* of one queue, in 16-byte segments of WQEs */
	HW_DATA_UNIT = 256, /* bytes of data that cost as much as a segment */
};

void hw_turns_add(struct hw_qp *qp);
void hw_turns_remove(struct hw_qp *qp);
/** The queue whose turn it is, NULL if none can execute. */
struct hw_qp *hw_turns_next(struct hw_dev *dev);

/** Whether a turn of @qp goes on. */
static inline bool hw_turns_has_share(const struct hw_qp *qp)
{
	return (int64_t)(qp->account - qp->dev->round) < HW_SHARE;
}

/** @qp executed a WQE of @segments with @bytes of data. */
static inline void hw_turns_charge(struct hw_qp *qp, unsigned segments, uint32_t bytes)
{
	const uint64_t cost = segments + bytes / HW_DATA_UNIT;

	qp->account += cost;
	qp->dev->cost += cost;
}

#endif
