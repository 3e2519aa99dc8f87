/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq-pool.h - the completion queues of all reply queues. Each reply ends with one signalled WQE; its CQE
 * names the queue pair and the WQE index, that is, the session and the instance that is finished. So one
 * queue tells about many sessions, and one event about many requests.
 *
 * A queue never overflows: sessions are charged for every CQE they may have unread, flushed ones included,
 * and go to another queue when one is full.
 */
#ifndef RNIC_CQ_POOL_H
#define RNIC_CQ_POOL_H

#include "reddnd/rnic/queue.h"

#include <stdbool.h>
#include <sys/queue.h>

enum { CQ_POOL_LOG_CQES = 14 };

/* In the cookies of its events */
#define CQ_POOL_COOKIE (UINT64_C(1) << 63)

struct cq_pool_queue {
	struct rnic_block block;
	struct rnic_cq cq;
	uint32_t charged; /* CQEs */
	bool taken;       /* CQEs were taken since the room of the last ones was given back */
	bool unarmed;     /* CQEs were taken, or an event came, since the last event was asked for */
	uint64_t cookie;
	TAILQ_ENTRY(cq_pool_queue) link;
};

struct cq_pool {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	TAILQ_HEAD(, cq_pool_queue) cqs;
	struct cq_pool_queue *at; /* where the last CQE was taken from */
	uint64_t last_cookie;
};

/** Makes the first queue, which stays. */
int cq_pool_init(struct cq_pool *pool, struct rnic_device *dev, struct rnic_arena *arena);
void cq_pool_deinit(struct cq_pool *pool); /* after all sessions; fine on one that is all zero */

/** A queue with room for @cqes more. -ENOSPC, or what the device says. Armed if it is new. */
int cq_pool_charge(struct cq_pool *pool, uint32_t cqes, struct cq_pool_queue **cq);
void cq_pool_refund(struct cq_pool *pool, struct cq_pool_queue *cq, uint32_t cqes); /* NULL is fine */

/** Takes one CQE: 1, or 0 when all queues are empty. One queue after the other. */
int cq_pool_next(struct cq_pool *pool, struct rnic_cqe *cqe);
/** Gives the room of what was taken back to the device. */
void cq_pool_update(struct cq_pool *pool);
/** An event with CQ_POOL_COOKIE came: it may be of CQEs that were taken before, and its queue will raise no
 * other. */
void cq_pool_event(struct cq_pool *pool, uint64_t cookie);
/** Asks for an event of the queues that have had CQEs or events; take once more afterwards. */
void cq_pool_arm(struct cq_pool *pool);

#endif
