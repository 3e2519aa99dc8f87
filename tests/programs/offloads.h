/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offloads.h - programs, and for each what it means in plain C (run.h).
 */
#ifndef TESTS_PROGRAMS_OFFLOADS_H
#define TESTS_PROGRAMS_OFFLOADS_H

#include "tests/programs/run.h"

extern const struct run_offload library[], features[], loops[], places[], above[];
extern const unsigned nlibrary, nfeatures, nloops, nplaces, nabove;

/** The node, from 1, with the key of the next requests to list-walk.rdn; 0: any, or none. */
extern unsigned library_list_place;

#endif
