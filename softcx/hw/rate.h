/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - limits of what queues send: a tree with queues at its leaves. Internal to softcx/hw.
 *
 * The limits count the bytes of messages that requesters send, without headers and responses to READs. A
 * queue that has sent pauses until its limit and all above it have caught up, so that over any time longer
 * than the burst below no more is sent than they allow.
 */
#ifndef SOFTCX_HW_RATE_H
#define SOFTCX_HW_RATE_H

#include "softcx/hw/dev.h"

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

#endif
