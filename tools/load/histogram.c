/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/histogram.h"

/* Values below 64 have buckets of their own; then each power of two has 64. */
static unsigned bucket_of(uint64_t v)
{
	unsigned shift;

	if (v < HISTOGRAM_SUB)
		return (unsigned)v;
	shift = 63 - 6 - (unsigned)__builtin_clzll(v);
	return (shift + 1) * HISTOGRAM_SUB + (unsigned)((v >> shift) - HISTOGRAM_SUB);
}

/* The largest value of the bucket. */
static uint64_t top_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < HISTOGRAM_SUB)
		return bucket;
	shift = bucket / HISTOGRAM_SUB - 1;
	return (((uint64_t)(bucket % HISTOGRAM_SUB) + HISTOGRAM_SUB + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	h->buckets[bucket_of(ns)]++;
	h->count++;
	if (ns > h->max)
		h->max = ns;
}

uint64_t histogram_at(const struct histogram *h, double part)
{
	uint64_t wanted = (uint64_t)(part * (double)h->count + 0.5), seen = 0;

	if (!h->count)
		return 0;
	if (wanted < 1)
		wanted = 1;
	for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
		seen += h->buckets[b];
		if (seen >= wanted)
			return top_of(b) < h->max ? top_of(b) : h->max;
	}
	return h->max;
}
