/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/histogram.h"

void histogram_add(struct histogram *h, uint64_t ns)
{
	h->buckets[bucket_of(ns, HISTOGRAM_BITS)]++;
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
		if (seen >= wanted) {
			uint64_t top = bucket_top(b, HISTOGRAM_BITS);

			return top < h->max ? top : h->max;
		}
	}
	return h->max;
}
