/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send-queue.h - a queue pair that only sends, and whose CQEs nobody takes: the NIC waits for their number,
 * and the daemon looks for errors.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_SEND_QUEUE_H
#define SESSION_SEND_QUEUE_H

#include "reddnd/generation/queue-layout.h"
#include "reddnd/rnic/qp.h"

/** Makes both at @layout of @block, which must outlive them, or finds them if that was adopted. @managed: the
 * SQ runs what another queue enables; else what is posted. Events carry these cookies. An error of the
 * device, logged, or -EBADMSG: rnic_qp_deinit() and rnic_cq_deinit() clean up, of all zero as well. */
int session_send_queue_make(struct rnic_cq *cq, struct rnic_qp *qp, const struct rnic_block *block,
	const struct queue_layout_qp *layout, bool managed, uint64_t cq_cookie, uint64_t qp_cookie);

#endif
