/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit.h - the completion queues of all reply queues. Each reply ends with one signalled WQE; its CQE names the queue
 * pair and the WQE index, that is, the session and the instance that is finished. So one queue tells about many
 * sessions, and one event about many requests.
 *
 * A queue never overflows: sessions are charged for every CQE they may have unread, flushed ones included, and go to
 * another queue when one is full.
 */
#ifndef SESSION_AUDIT_H
#define SESSION_AUDIT_H

#include "reddnd/rnic/queue.h"

enum { AUDIT_MAX_CQS = 64, AUDIT_LOG_CQES = 14 };

struct audit_cq {
	struct rnic_block block;
	struct rnic_cq cq;
	uint32_t charged; /* CQEs */
};

struct audit {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct audit_cq *cqs[AUDIT_MAX_CQS];
};

/** Makes the first queue; its events carry @cookie. */
int audit_init(struct audit *a, struct rnic_device *dev, struct rnic_arena *arena, uint64_t cookie);
void audit_deinit(struct audit *a); /* after all sessions; fine on one that is all zero */

/** A queue with room for @cqes more. -ENOSPC, or what the device says. Armed if it is new. */
int audit_charge(struct audit *a, uint32_t cqes, uint64_t cookie, struct audit_cq **cq);
void audit_refund(struct audit *a, struct audit_cq *cq, uint32_t cqes); /* NULL is fine */

/** Takes one CQE: 1, or 0 when all queues are empty. */
int audit_next(struct audit *a, struct rnic_cqe *cqe);
/** Gives the room of what was taken back to the device. */
void audit_update(struct audit *a);
/** Asks for an event; take once more afterwards. */
void audit_arm(struct audit *a);

#endif
