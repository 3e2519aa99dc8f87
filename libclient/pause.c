/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/pause.h"

#include "util/clock.h"

#include <sys/random.h>

uint64_t reddn_jitter(uint64_t time)
{
	uint32_t any = 0;

	if (getrandom(&any, sizeof(any), GRND_NONBLOCK) < 0)
		any = (uint32_t)clock_ns();
	return time - time / 4 + any % (time / 2 + 1);
}
