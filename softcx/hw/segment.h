/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * segment.h - long messages, of which a queue moves a part in each of its turns. Internal to softcx/hw.
 *
 * A RoCE NIC sends a message as packets, and those of other queues between them. How many at a time is not
 * public for ConnectX. Another vendor's driver sets it, so that "QPs with large traffic" do not keep others
 * waiting: to one MTU, as 16 KiB were too many (Linux hw/hns, long message loopback slice).
 *
 * Here a message ends its turn when the share of its queue is over (turns.h), at a multiple of HW_PACKET. The
 * WQE stays at the head of the queue. WRITEs and READs move part by part, so that others see half of them,
 * and words across the end of a part may be torn, as those across the end of a packet. Keys, the peer and its
 * rights are looked at again for each part: what has gone meanwhile makes the message fail in the middle.
 * Each part is acknowledged: what is lost is sent again from there, with all retries, and to the same
 * connection, whose PSNs go on with each part. A SEND, which fills one RECV, is paid for part by part, and
 * moves with the last one. A queue is drained (SQD) when the message is over. Datagrams are packets. With a
 * modelled clock, and when a fault splits it, a message is one part.
 */
#ifndef SOFTCX_HW_SEGMENT_H
#define SOFTCX_HW_SEGMENT_H

#include "softcx/hw/exec.h"

enum {
	HW_PACKET = 4096,           /* bytes: the largest MTU */
	HW_SEGMENT_ALONE = 1 << 16, /* bytes at once of a queue beside which no other can execute */
};

/* Of messages longer than a packet */
bool hw_segment_end(struct hw_wqe *w);
void hw_segment_advance(struct hw_span *spans, unsigned *n, uint32_t bytes);

/** Sets w->part, how many of the w->bytes of its message are moved now. True: these are the last. */
static inline bool hw_segment_choose(struct hw_wqe *w)
{
	w->part = w->bytes - w->qp->moved;
	return __builtin_expect(w->part <= HW_PACKET, 1) || hw_segment_end(w);
}

/** Whether each part of a message of @w moves in its turn. Those of a SEND are only paid for. */
static inline bool hw_segment_moves(const struct hw_wqe *w)
{
	return w->opcode == WQE_OP_WRITE || w->opcode == WQE_OP_WRITE_IMM || w->opcode == WQE_OP_READ;
}

/** Moves the start of @spans, of a whole message, to where this part begins. */
static inline void hw_segment_skip(const struct hw_wqe *w, struct hw_span *spans, unsigned *n)
{
	if (__builtin_expect(w->qp->moved, 0))
		hw_segment_advance(spans, n, w->qp->moved);
}

#endif
