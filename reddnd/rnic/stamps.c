/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/stamps.h"

#include "reddnd/rnic/identity.h"
#include "reddnd/rnic/internal.h"

#include <time.h>

enum { DAY = 86400 };

static const uint64_t second = 1000000000;

bool rnic_stamp_is_real_time(uint64_t stamp)
{
	int64_t seconds = (int64_t)(stamp >> 32) - time(NULL);

	return seconds > -DAY && seconds < DAY;
}

uint64_t rnic_stamps_of_clock(uint64_t khz, uint64_t from, uint64_t to)
{
	if (khz == 0)
		return (to >> 32) * second + (uint32_t)to - (from >> 32) * second - (uint32_t)from;
	return (uint64_t)((double)(to - from) * 1e6 / (double)khz + 0.5);
}

bool rnic_stamps_between(struct rnic_device *dev, uint64_t from, uint64_t to, uint64_t *ns)
{
	struct rnic_identity id;

	if (!dev->clock.known) {
		dev->clock.known = true;
		dev->clock.real_time = rnic_stamp_is_real_time(to);
		if (rnic_identity_read(dev, &id) == 0)
			dev->clock.khz = id.clock_khz;
	}
	if (to < from || (!dev->clock.real_time && dev->clock.khz == 0))
		return false;
	*ns = rnic_stamps_of_clock(dev->clock.real_time ? 0 : dev->clock.khz, from, to);
	return true;
}
