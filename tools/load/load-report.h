/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load-report.h - print the results of a run of load.h on stdout.
 */
#ifndef TOOLS_LOAD_LOAD_REPORT_H
#define TOOLS_LOAD_LOAD_REPORT_H

#include "libclient/reddn.h"
#include "tools/load/histogram.h"

#include <stdbool.h>
#include <stdint.h>

enum { LOAD_HOSTS = 64 }; /* more are not reported: a handle of libreddn without shards has up to 16 */

struct load_report {
	bool puts;     /* not gets */
	uint64_t gets; /* or puts, or both: answered, without the warm-up */
	uint64_t started_ns, ended_ns, cpu_ns;
	uint64_t hits, misses, errors, unanswered;
	bool verified; /* answers were compared with known values */
	uint64_t wrong;
	uint64_t unverified; /* hits without a known value */
	uint64_t retries_moved, retries_overtaken, retries_conflict, retries_absent, reconnects;
	/* where the requests went, if there are several hosts; else no host */
	struct reddn_host_info host[LOAD_HOSTS];
	unsigned nhosts;
	bool may_use_tcp; /* some way has another path */
	uint64_t over_tcp;
	uint64_t present;                /* keys that are there, when new ones were put; otherwise 0 */
	uint64_t conflicts;              /* puts on a condition that were asked for once more */
	const struct histogram *latency; /* ns */
	const struct histogram *writes; /* of the puts and deletes among gets; NULL: all requests are alike */
};

/** Add what a client did at one of its hosts. */
void load_report_add_host(struct load_report *r, const struct reddn_host_info *of);

/** One JSON object on a line; reddn(1) lists its members. */
void load_report_json(const struct load_report *r);

/** Lines of text. */
void load_report_text(const struct load_report *r);

#endif
