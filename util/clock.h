/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h - the monotonic clock, and the CPU time of this process and thread.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds of clock @id (clock_gettime(2)), which must exist. */
static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/** Seconds since @ns of CLOCK_REALTIME, 0 if that is to come: the clock of another host may be ahead. */
static inline double clock_age_s(uint64_t ns)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	return now > ns ? (double)(now - ns) / 1e9 : 0;
}

/** CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t clock_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/** CLOCK_MONOTONIC in microseconds. */
static inline uint64_t clock_us(void)
{
	return clock_ns() / 1000;
}

/** CLOCK_MONOTONIC in milliseconds. */
static inline uint64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}

/** CLOCK_MONOTONIC in nanoseconds at the last tick of the kernel, some milliseconds ago: no hardware is read,
 * which takes most of the time of clock_ns(). */
static inline uint64_t clock_tick_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

/** The same in milliseconds. */
static inline uint64_t clock_tick_ms(void)
{
	return clock_tick_ns() / 1000000;
}

#endif
