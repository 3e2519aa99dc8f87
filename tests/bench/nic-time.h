/* SPDX-License-Identifier: BSD-2-Clause */
/* nic-time.h - the time that something took, by the clock and of the CPU, in another process. */
#ifndef TESTS_BENCH_NIC_TIME_H
#define TESTS_BENCH_NIC_TIME_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct nic_time {
	unsigned pid;
	double wall, cpu; /* seconds */
};

static inline double nic_time_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/** CPU time of all that the process has executed (proc(5) knows it in nanoseconds only there). */
static inline double nic_time_cpu(unsigned pid)
{
	char path[64];
	uint64_t ns;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/schedstat", pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%" SCNu64, &ns) != 1) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	fclose(f);
	return (double)ns * 1e-9;
}

static inline struct nic_time nic_time_start(unsigned pid)
{
	return (struct nic_time){pid, nic_time_now(), nic_time_cpu(pid)};
}

/** Makes durations of it. */
static inline void nic_time_stop(struct nic_time *t)
{
	t->wall = nic_time_now() - t->wall;
	t->cpu = nic_time_cpu(t->pid) - t->cpu;
}

#endif
