/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - the results of checks, as a table for people, and as JSON for programs and bug reports.
 */
#ifndef TOOLS_REDDN_PROBE_REPORT_H
#define TOOLS_REDDN_PROBE_REPORT_H

#include "reddnd/probe/probe.h"

#include <stdio.h>

struct report {
	const struct rnic_device *dev; /* NULL: it could not be opened */
	bool thorough;
	const struct probe_check *const *checks;
	const struct probe_result *results;
	unsigned n;
};

void report_text(const struct report *report, FILE *f);
void report_json(const struct report *report, FILE *f);

/** The checks without results. */
void report_list(const struct probe_check *const *checks, unsigned n, FILE *f);
void report_list_json(const struct probe_check *const *checks, unsigned n, FILE *f);

#endif
