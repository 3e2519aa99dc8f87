/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/pause.h"

#include "util/clock.h"

#include <sys/random.h>
#include <time.h>

enum { WAITER_LEAST_NS = 20000, WAITER_MOST_NS = 5000000 };

uint64_t reddn_jitter(uint64_t time)
{
	uint32_t any = 0;

	if (getrandom(&any, sizeof(any), GRND_NONBLOCK) < 0)
		any = (uint32_t)clock_ns();
	return time - time / 4 + any % (time / 2 + 1);
}

struct reddn_waiter reddn_waiter_begin(int timeout_ms)
{
	return (struct reddn_waiter){
		.until = timeout_ms < 0 ? UINT64_MAX : clock_ns() + timeout_ms * 1000000ull,
		.pause = WAITER_LEAST_NS,
	};
}

bool reddn_waiter_pause(struct reddn_waiter *w)
{
	const uint64_t now = clock_ns(), left = w->until - now;

	if (now >= w->until)
		return false;
	nanosleep(&(struct timespec){.tv_nsec = (long)(w->pause < left ? w->pause : left)}, NULL);
	w->pause = 2 * w->pause < WAITER_MOST_NS ? 2 * w->pause : WAITER_MOST_NS;
	return true;
}
