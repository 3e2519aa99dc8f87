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
 * A message longer than what is left of the share ends its turn in the middle (exec.h), so that shares are
 * equal in bytes, however long messages are.
 *
 * With a modelled clock the order is that of its time, and all queues are on dev->ready.
 */
#ifndef SOFTCX_HW_TURNS_H
#define SOFTCX_HW_TURNS_H

#include "softcx/hw/dev.h"
#include "softcx/hw/qp.h"

#include <stdint.h>

enum {
	HW_SHARE = 32,      /* of one queue, in 16-byte segments of WQEs */
	HW_DATA_UNIT = 256, /* bytes of data that cost as much as a segment */
};

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

/** Moves the SQ between the lists of enum hw_run. @wait_cq and @due are set before. */
void hw_qp_set_run(struct hw_qp *qp, enum hw_run run);
void hw_qp_resume(struct hw_qp *qp); /* from a WAIT or a pause */
/** What is at the head of the SQ is executed @ns later. */
void hw_qp_pause(struct hw_qp *qp, uint64_t ns);

/*
 * Limits of what queues send: a tree with queues at its leaves.
 *
 * The limits count the bytes of messages that requesters send, without headers and responses to READs. A
 * queue that has sent pauses until its limit and all above it have caught up, so that over any time longer
 * than the burst below no more is sent than they allow.
 */

struct hw_rate {
	struct hw_rate *parent; /* or NULL */
	uint32_t id, mbps;      /* mbps 0: no limit */
	uint64_t paid_until;    /* ns: when the bytes sent so far are within the limit */
	unsigned members;       /* queues and rates below */
};

enum { HW_RATE_BURST_NS = 100000 };

/** When a queue below @rate may send next, ns. Now or earlier: at once. */
uint64_t hw_rate_due(const struct hw_rate *rate);
void hw_rate_charge(struct hw_rate *rate, uint32_t bytes, uint64_t now);

/**
 * Executes enabled WQEs of ready queues and lets effects land, a bounded number. It ends soon after a CQE
 * that software waits for. False: there was nothing to do.
 */
bool hw_pass_run(struct hw_dev *dev);

#endif
