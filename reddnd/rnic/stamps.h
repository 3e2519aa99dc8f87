/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stamps.h - the time between two timestamps of CQEs. A device writes ticks of a free-running clock, whose
 * frequency it reports, or seconds << 32 | nanoseconds of a real-time clock, as it is set (PRM: CQE,
 * timestamp; Linux mlx5_real_time_cyc2time()).
 */
#ifndef RNIC_STAMPS_H
#define RNIC_STAMPS_H

#include "reddnd/rnic/device.h"

/** True: @stamp, which the device has just written, is of a real-time clock. It may be a day wrong. */
bool rnic_stamp_is_real_time(uint64_t stamp);

/** Nanoseconds from @from to @to, which @dev has written, the later one now. False: the device does not
 * report its clock, or @to is earlier. */
bool rnic_stamps_between(struct rnic_device *dev, uint64_t from, uint64_t to, uint64_t *ns);

/** The same of a clock that is known, @to not being earlier. @khz: 0 if it is a real-time clock. */
uint64_t rnic_stamps_of_clock(uint64_t khz, uint64_t from, uint64_t to);

#endif
