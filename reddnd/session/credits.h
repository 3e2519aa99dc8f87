/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * credits.h - a queue pair that does nothing but NOPs, whose CQEs a ring of the NIC waits for: so this
 * process decides how far that goes on by itself. Nobody takes the CQEs. The doorbell record has how many
 * credits were given, for the next daemon.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_CREDITS_H
#define SESSION_CREDITS_H

#include "reddnd/generation/queue-layout.h"
#include "reddnd/rnic/qp.h"

struct session_credits {
	struct rnic_cq cq;
	struct rnic_qp qp;
	uint64_t given;
};

/** Makes the queue, or finds it in a block that was adopted. @block must outlive it. Events of the CQ and of
 * the QP carry these cookies. An error of the device, logged, or -EBADMSG: session_credits_free() cleans up.
 */
int session_credits_make(struct session_credits *c, const struct rnic_block *block,
	const struct queue_layout_qp *layout, uint64_t cq_cookie, uint64_t qp_cookie);
int session_credits_connect(struct session_credits *c);
/** How many a daemon before this one has @given, of which at least @used are used up, and no more than @ahead
 * are not. @posted: WQEBBs of the queue, from its doorbell record. -EBADMSG: it cannot have given so many. */
int session_credits_left(uint16_t posted, uint64_t used, uint64_t ahead, uint64_t *given);
/** Goes on with so many in a queue that was found. */
void session_credits_resume(struct session_credits *c, uint64_t given);
/** There is room for the NOPs of those that are not used up. */
void session_credits_give(struct session_credits *c, uint64_t n);

/* Fine on one that is all zero. */

void session_credits_stop(struct session_credits *c);
void session_credits_destroy_qp(struct session_credits *c);
void session_credits_free(struct session_credits *c);

#endif
