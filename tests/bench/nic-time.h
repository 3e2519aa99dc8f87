/* SPDX-License-Identifier: BSD-2-Clause */
/* nic-time.h - wall time, and the CPU time of another process. */
#ifndef TESTS_BENCH_NIC_TIME_H
#define TESTS_BENCH_NIC_TIME_H

#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct nic_time {
	unsigned pid;
	double wall, cpu; /* seconds: at the start, or durations after nic_time_stop() */
};

static inline double nic_time_now(void)
{
	return (double)clock_ns() * 1e-9;
}

/** CPU time of all threads of the process, in seconds. */
static inline double nic_time_cpu(unsigned pid)
{
	clockid_t clock;
	int err = clock_getcpuclockid((pid_t)pid, &clock);

	if (err) {
		fprintf(stderr, "the CPU time of process %u: %s\n", pid, strerror(err));
		exit(1);
	}
	return (double)clock_read_ns(clock) * 1e-9;
}

static inline struct nic_time nic_time_start(unsigned pid)
{
	return (struct nic_time){pid, nic_time_now(), nic_time_cpu(pid)};
}

/** Replaces the times of the start by durations. */
static inline void nic_time_stop(struct nic_time *t)
{
	t->wall = nic_time_now() - t->wall;
	t->cpu = nic_time_cpu(t->pid) - t->cpu;
}

#endif
