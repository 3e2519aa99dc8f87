/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h - latencies in bounded memory. The width of a bucket is at most 1/512 of its value, so
 * percentiles are exact to 0.2 %. Not thread-safe.
 */
#ifndef TOOLS_LOAD_HISTOGRAM_H
#define TOOLS_LOAD_HISTOGRAM_H

#include "util/buckets.h"

enum { HISTOGRAM_BITS = 9, HISTOGRAM_BUCKETS = BUCKETS(64, HISTOGRAM_BITS) };

struct histogram {
	uint64_t count;
	uint64_t max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t ns);

/** The value that the fraction @part (0 to 1) of all values does not exceed; 0 without values. */
uint64_t histogram_at(const struct histogram *h, double part);

#endif
