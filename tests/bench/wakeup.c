/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wakeup ROUNDS - measures the time to wake a process that sleeps in poll(2) on this machine.
 *
 * Two processes wake each other in turns, each on its own core if there are two. Prints the median of half a
 * round in nanoseconds. A real device would first raise an interrupt, which is not included.
 */
#include "tests/lib/arg.h"
#include "util/clock.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

static void run_on(unsigned number)
{
	cpu_set_t may, one;

	if (sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) < 2)
		return;
	CPU_ZERO(&one);
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &may) && !number--)
			CPU_SET(c, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void sleep_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;

	if (poll(&p, 1, -1) != 1 || read(fd, &n, sizeof(n)) != sizeof(n))
		exit(1);
}

static void wake(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		exit(1);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 2 ? arg_number(argv[1], ULONG_MAX) : 0;
	uint64_t *took = rounds ? calloc(rounds, sizeof(*took)) : NULL;
	int to = eventfd(0, 0), from = eventfd(0, 0);
	pid_t child;

	if (!took || to < 0 || from < 0) {
		fprintf(stderr, "usage: wakeup ROUNDS\n");
		return 2;
	}
	child = fork();
	if (child < 0)
		return 1;
	run_on(child == 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned long i = 0; i < rounds; i++) {
			sleep_for(to);
			wake(from);
		}
		return 0;
	}
	for (unsigned long i = 0; i < rounds; i++) {
		uint64_t before = clock_ns();

		wake(to);
		sleep_for(from);
		took[i] = (clock_ns() - before) / 2;
	}
	qsort(took, rounds, sizeof(*took), ascending);
	printf("%llu\n", (unsigned long long)took[rounds / 2]);
	free(took);
	return 0;
}
