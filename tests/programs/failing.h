/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failing.h - a program whose requests overlap, and of which a queue fails while some of them are at work.
 */
#ifndef TESTS_PROGRAMS_FAILING_H
#define TESTS_PROGRAMS_FAILING_H

#include "tests/programs/run.h"

struct failing_counts {
	uint64_t runs, answered, lost; /* requests; those that were lost had been sent */
};

/**
 * Up to @requests of one client, under @seed; at some moment one of the queues fails. What is answered then
 * or later is right, the slot of what is not has its bytes of before or of messages of the reply, the regions
 * are as they were, and the silicon comes to rest. @slots: that many, recycled; 0: armed by the rig. True, or
 * false and the reason in @why. Adds to @counts.
 */
bool failing_run(const struct run_offload *o, struct program *p, uint64_t seed, unsigned slots,
	unsigned requests, struct failing_counts *counts, char why[400]);

#endif
