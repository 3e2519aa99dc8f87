/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path.h - how long a chain takes on a ConnectX-5, from the request's arrival to the end of the reply: a model.
 *
 * The costs are those that the RedN paper (NSDI'22, section 5.1) measured: a WR in the order of its queue 0.17 us after
 * the one before it, one behind a WAIT 0.19 us after the completion, one that a SEND_EN releases 0.54 us after it, because it is
 * fetched only then; and a verb's own part, which is its latency less that of a NOOP (1.21 us): WRITE 1.6, READ and atomics
 * 1.8 us. Network, client, contention and the sizes of data are left out. It compares programs; it is no promise.
 */
#ifndef PROGRAM_PATH_H
#define PROGRAM_PATH_H

#include "reddnd/chain/build.h"

/** Of one step, in nanoseconds since the request was there. */
struct path_time {
	uint32_t start, done;
	unsigned after; /* step whose moment decided when this one starts; PATH_REQUEST: the request */
	bool critical;  /* the reply would be earlier if this step were */
};

#define PATH_REQUEST (~0u)

/** Fills @times, one for each step of @d, which is ordered. Returns the time of the whole, in nanoseconds. */
uint32_t path_model(const struct chain_desc *d, struct path_time *times);

#endif
