/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layouts.h - what a session of an offload takes, by its depth: the number of instances, the layout of their
 * queues, CQEs, bytes. And what its instances are written from. Made with the offload, for each depth that a
 * client may ask for.
 *
 * Thread rules: one thread makes them; then, but for layouts_recycler(), any.
 */
#ifndef GENERATION_LAYOUTS_H
#define GENERATION_LAYOUTS_H

#include "reddnd/generation/offload.h"
#include "reddnd/rnic/plain.h"

/** Makes them for queues of up to @max_wqebbs. -E2BIG: the device has no queues that deep; @most is the
 * number of instances that it has room for. -ENOMEM. */
int layouts_make(struct offload *o, uint32_t max_wqebbs, unsigned *most);
/** The same of an offload that the CPU executes, with queues of @dev. Errors have been logged. */
int layouts_make_cpu(struct offload *o, const struct rnic_device *dev);
void layouts_forget(struct offload *o); /* fine if there are none */

unsigned layouts_slots(const struct offload *o, unsigned depth);
/** Layout of the queues of a session with @depth, at most depth_max. */
const struct queue_layout *layouts_of_depth(const struct offload *o, unsigned depth);
/** The same of a session with so many instances; NULL: this offload has none. */
const struct queue_layout *layouts_of_slots(const struct offload *o, unsigned slots);
/** A hash of what instances of a recycled offload in that layout are written from. */
uint64_t layouts_image(const struct offload *o, const struct queue_layout *layout);
/** Of a recycled offload: what the recyclers of its sessions with that layout are written from. Made when
 * the first of them begins, which takes milliseconds; only on the thread of sessions. -ENOMEM. */
int layouts_recycler(
	const struct offload *o, const struct queue_layout *layout, const struct ring_image **recycler);
/** CQEs of its replies that may be unread; of a recycled offload, which has a CQ of its own, 0. */
uint32_t layouts_reply_cqes(const struct offload *o, unsigned slots);
/** True if a shared CQ has room for them, or each session has one alone. */
bool layouts_share_cqs(const struct offload *o, unsigned slots);
/** Bytes of memory of all its queues; @sends: its client takes no immediates. */
uint64_t layouts_queue_bytes(const struct offload *o, unsigned depth, bool sends);
/** The same of a session that has @layout. */
uint64_t layouts_bytes(const struct offload *o, const struct queue_layout *layout);
/** Bytes of a store that such a session holds: each instance has an extent, for the longest payload. */
uint64_t layouts_extent_bytes(const struct offload *o, const struct queue_layout *layout);
/** Of a session whose requests the CPU executes: bytes of a RECV, of the data of the replies to a request,
 * and of these with a number for each, where there are no immediates; and the number of requests for whose
 * replies there is room. */
struct layouts_cpu {
	uint32_t recv_bytes, data_size, reply_bytes;
	unsigned replies;
};
struct layouts_cpu layouts_for_cpu(const struct offload *o, unsigned slots);
/** Its queues, but for events and ledger; @sends: there are no immediates. Their memory has the RECVs and
 * the replies. */
struct rnic_plain_attr layouts_cpu_queue(const struct offload *o, unsigned slots, bool sends);

#endif
