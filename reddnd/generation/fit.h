/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit.h - a device and a program: what programs are compiled for, and what the device lacks for one that was.
 * Pure: what the device does is in its capabilities, with what self-tests have observed.
 */
#ifndef GENERATION_FIT_H
#define GENERATION_FIT_H

#include "reddnd/program/program.h"
#include "reddnd/rnic/caps.h"

enum { FIT_WHY = 320 }; /* bytes of a reason */

/** What programs are compiled for on this device; nothing is known about their regions. @recycled: the direct
 * form of conditions is left out, since it puts operands where a ring that renews itself has its indices. */
struct program_target fit_target(const struct rnic_caps *caps, bool recycled);

/** The same where the CPU executes them. */
struct program_target fit_cpu_target(void);

/** WQEBBs of the groups that the device fetches together, if programs can be laid out for them; 0: it fetches
 * none, or others. */
unsigned fit_group(const struct rnic_caps *caps);

/** 0: the device can run the program, compiled for fit_target(). -EOPNOTSUPP: it cannot, and @why has the
 * reason, a clause. */
int fit_check(const struct program *p, bool recycled, const struct rnic_caps *caps, char why[static FIT_WHY]);

#endif
