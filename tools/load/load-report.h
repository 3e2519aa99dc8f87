/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-report.h - print the results of a run of load.h on stdout.
 */
#ifndef TOOLS_LOAD_LOAD_REPORT_H
#define TOOLS_LOAD_LOAD_REPORT_H

#include "tools/load/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct load_report {
	uint64_t gets; /* answered, without the warm-up */
	uint64_t started_ns, ended_ns, cpu_ns;
	uint64_t hits, misses, errors, unanswered;
	bool verified; /* answers were compared with known values */
	uint64_t wrong;
	uint64_t unverified; /* hits without a known value */
	uint64_t retries_moved, retries_overtaken, reconnects;
	bool may_use_tcp; /* some way has another path */
	uint64_t over_tcp;
	const struct histogram *latency; /* ns */
};

/** One JSON object on a line; reddn(1) lists its members. */
void load_report_json(const struct load_report *r);

/** Lines of text. */
void load_report_text(const struct load_report *r);

#endif
