/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * measure.h - the microbenchmarks of the RedN paper (figures 7 and 8, tables 3 and 4) on a device, by the
 * timestamps of completions: the figures that a clock file has.
 */
#ifndef TOOLS_REDDN_PROBE_MEASURE_H
#define TOOLS_REDDN_PROBE_MEASURE_H

#include "reddnd/rnic/device.h"

#include <stdbool.h>

enum { MEASURE_BYTES = 64 /* of every verb in the latencies and rates */ };

struct measured {
	bool remote;                               /* over two ports; else in loopback, and network is 0 */
	double noop, write, read, atomic, network; /* microseconds */
	double wq, completion, doorbell;           /* microseconds that one more NOOP takes */
	unsigned pus;                              /* processing units that the port's queues share */
	double write_rate, read_rate, atomic_rate; /* millions per second */
	double port, pcie;                         /* gigabits per second */
	double timestamp_khz;
};

/**
 * Measures @dev; with @other, which may be NULL, between their ports, which are connected back to back or by
 * a switch. 0, or a negative errno with the words in @why.
 */
int measure(struct rnic_device *dev, struct rnic_device *other, struct measured *m, char *why, size_t size);

#endif
