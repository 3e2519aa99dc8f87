/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fast-clock.c - preloaded into perftest: gettimeofday() runs ten times as fast. Each program of perftest
 * measures the processor with it, by polling for 0.22 s (get_clock.c, sample_get_cpu_mhz()), and uses it for
 * nothing else.
 */
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

enum { FACTOR = 10 };

static int64_t start;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
	start = now();
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	int64_t us = (start + (now() - start) * FACTOR) / 1000;

	(void)tz;
	*tv = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
	return 0;
}
