/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.h - proves that the order a description asks for is enough, whatever the NIC does within it.
 *
 * What is assumed of the NIC, and no more:
 *   - a WQE may be fetched from the moment a SEND_EN covers it, and has been when it starts;
 *   - WQEs of a queue start in order; a WAIT ends when its CQE is there, and the next starts after that;
 *   - a fenced WQE starts after every READ and atomic before it in its queue has completed;
 *   - a CQE says that its WQE and all before it in its queue have completed, their data in memory;
 *   - the request's bytes are in memory when the WAIT for it ends.
 * READs land late, unfenced WQEs overlap, queues run at any speed. Errors are not considered: the CQE of a
 * failed WQE ends a WAIT as well, so a queue that waits for another must not take its success for granted.
 *
 * What is proven:
 *   - two steps that touch the same bytes of WQEs or scratch, one of them writing, are ordered, and that
 *     includes the fetch of every WQE that is patched, and the bytes of the request. Two atomics may race.
 *     Bytes of regions are shared with others, and how to share them is the author's to say;
 *   - SEND_ENs of one queue are ordered: an index never goes back;
 *   - when the last CQE of the reply is there, all of the instance is over and its slot may be armed again.
 */
#ifndef CHAIN_ORDER_H
#define CHAIN_ORDER_H

#include "reddnd/chain/build.h"

/** 0; CHAIN_REFUSED with the reason in @err, also when chain_build() would refuse @d; -ENOMEM. */
int chain_check_order(const struct chain_desc *d, char err[CHAIN_ERR]);

#endif
