/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * suite.h - runs (run.h) as tests of cmocka.
 */
#ifndef TESTS_PROGRAMS_SUITE_H
#define TESTS_PROGRAMS_SUITE_H

#include "tests/programs/run.h"

/**
 * Runs every one of @offloads as a test of its own: @requests requests under each of @seeds seeds. @filter:
 * only that one; "--recycled": all of them with run_recycled; "--groups": with groups of 256 bytes;
 * "--swapped": with run_swapped; "--overlap": with run_overlap; "--recycled-overlap": with run_recycled, and
 * with run_overlap where both can be.
 */
int run_all(const struct run_offload *offloads, unsigned n, unsigned seeds, unsigned requests,
	const char *filter);

#endif
