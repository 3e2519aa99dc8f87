/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq-pool.h - completion queues that reply queues share. Each reply ends with one signalled WQE. Its CQE
 * names the queue pair and the WQE index, that is, the session and the instance that is finished. So one CQ
 * serves many sessions, and one event many requests.
 *
 * A shared CQ never overflows: each session is charged for the CQEs that it may have unread, flushed ones
 * included, and goes to another CQ when one is full. Where the device may flush more than was ever enabled,
 * that number has no bound, and each session gets a CQ of its own: if that overflows, only its own queues
 * fail.
 */
#ifndef RNIC_CQ_POOL_H
#define RNIC_CQ_POOL_H

#include "reddnd/rnic/qp.h"

#include <stdbool.h>
#include <sys/queue.h>

enum { CQ_POOL_LOG_CQES = 14 };

/* Set in the cookies of its events */
#define CQ_POOL_COOKIE (UINT64_C(1) << 63)

struct cq_pool_queue {
	struct ledger_slot *slot; /* or NULL */
	struct rnic_block block;
	struct rnic_cq cq;
	uint32_t charged; /* CQEs */
	bool alone;       /* of one session */
	bool taken;       /* CQEs were taken since the doorbell record was last written */
	bool unarmed;     /* CQEs were taken, or an event came, since the CQ was last armed */
	uint64_t cookie;
	TAILQ_ENTRY(cq_pool_queue) link;
};

struct cq_pool {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	TAILQ_HEAD(, cq_pool_queue) cqs;
	struct cq_pool_queue *at; /* the CQ that the last CQE came from */
	uint64_t last_cookie;
};

/** Makes the first CQ, which stays. */
int cq_pool_init(struct cq_pool *pool, struct rnic_device *dev, struct rnic_arena *arena);
void cq_pool_deinit(struct cq_pool *pool); /* after all sessions; fine on one that is all zero */

/** Bytes of memory that a CQ of one session takes. */
uint64_t cq_pool_bytes_alone(uint32_t cqes);

/** Finds or makes a CQ with room for @cqes more; a new one is armed. @alone: makes one that nobody else gets.
 * -ENOSPC, or the error of the device. */
int cq_pool_charge(struct cq_pool *pool, uint32_t cqes, bool alone, struct cq_pool_queue **cq);
void cq_pool_refund(struct cq_pool *pool, struct cq_pool_queue *cq, uint32_t cqes); /* NULL is fine */

/** Takes one CQE, from one CQ after the other: 1, or 0 when all are empty. */
int cq_pool_next(struct cq_pool *pool, struct rnic_cqe *cqe);
/** Gives the room of CQEs that were taken back to the device. */
void cq_pool_update(struct cq_pool *pool);
/** Notes an event with CQ_POOL_COOKIE. Its CQEs may have been taken already; the CQ raises no other event
 * until it is armed. */
void cq_pool_event(struct cq_pool *pool, uint64_t cookie);
/** Arms the CQs that had CQEs or events. A CQE may have come before, so take CQEs once more afterwards. */
void cq_pool_arm(struct cq_pool *pool);

#endif
