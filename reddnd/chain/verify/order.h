/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.h - proves that the order in a description is enough, whatever the NIC does within it.
 *
 * What is assumed of the NIC, and no more:
 *   - a WQE may be fetched from the moment a SEND_EN covers it, or another one of its group if the device
 * fetches groups (fetch_group), and has been when it starts;
 *   - WQEs of a queue start in order; a WAIT ends when its CQE is there, and the next starts after that;
 *   - a fenced WQE starts after every READ and atomic before it in its queue has completed. No source states
 * that WAIT, SEND_EN and RECV_EN heed a fence, so here they do not, except SEND_ENs of a description for
 * devices that were observed to do so (fenced_enables);
 *   - the responder executes what one queue sends in order, with the exceptions of access_in_turn();
 *   - a CQE means that its WQE and all before it in its queue have completed, with their data in memory;
 *   - the request's bytes are in memory when the WAIT for it ends. For a request that did not arrive whole
 * nothing is executed after a WAIT in the queue of the client. Where the WAIT is in a code queue (build.h,
 * overlap) the instance may run on a part of such a request: its accesses are inside their bounds, it changes
 * nothing but its own bytes, and its reply is flushed;
 *   - when a WQE fails, it and all WQEs of its queue that have not completed end with an error CQE each, none
 * of those that have not started ever does, and every WAIT for any of them ends. READs land late, unfenced
 * WQEs overlap, queues run at any speed, and any WQE may fail.
 *
 * What is proven:
 *   - two steps that touch the same bytes, one of them writing, do so in the order of the description's
 * steps, and that includes the fetch of every WQE that is patched, and the bytes of the request. Bytes of a
 *     region may be anywhere in it when the chain computes their address. Other users of a region order their
 * own accesses;
 *   - SEND_ENs of one queue are ordered: an index never goes back;
 *   - when the last CQE of the reply is there, all of the instance is over and its slot may be armed again;
 *   - errors do not lie: no step that signals an answer to the client (a WRITE_IMM or SEND of the reply, and
 * its last step) runs when an earlier step has failed; steps after an answer do not matter to it. No other
 * step that writes to a region or to the client runs when a step has failed whose data it uses. A WAIT does
 * not ensure that, since an error ends it too. Instead, for each queue but the one that enables the reply,
 * the step must be dormant and get its opcode from a step of that queue, which starts when all before it has
 * completed. A failure in the queue that enables the reply flushes the SEND_EN.
 */
#ifndef CHAIN_VERIFY_ORDER_H
#define CHAIN_VERIFY_ORDER_H

#include "reddnd/chain/ir/build.h"

/** 0; CHAIN_REFUSED with the reason in @err, also when chain_build() would refuse @d; -ENOMEM. */
int chain_check_order(const struct chain_desc *d, struct chain_error *err);

#endif
