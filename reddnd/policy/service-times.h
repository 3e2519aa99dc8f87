/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service-times.h - how long requests took in the server: from the completion of the RECV to that of the last
 * work request of the reply, which is when the client's NIC has acknowledged it. A histogram, exact to an
 * eighth. They are of this daemon, not of one before it. Pure.
 */
#ifndef POLICY_SERVICE_TIMES_H
#define POLICY_SERVICE_TIMES_H

#include "util/buckets.h"

enum {
	SERVICE_BITS = 3,
	SERVICE_UNIT_BITS = 6,                                           /* times are counted in 64 ns */
	SERVICE_BUCKETS = BUCKETS(33 - SERVICE_UNIT_BITS, SERVICE_BITS), /* to 8.6 s; longer ones as that */
};

/** All zero: none. */
struct service_times {
	uint64_t sum_ns;
	uint64_t count[SERVICE_BUCKETS];
};

/** @n requests took @ns nanoseconds each. */
void service_times_add(struct service_times *t, uint64_t ns, uint64_t n);
/** Adds all of @more to @t. */
void service_times_merge(struct service_times *t, const struct service_times *more);
/** The longest time, in nanoseconds, that bucket @i counts. */
uint64_t service_times_top(unsigned i);

#endif
