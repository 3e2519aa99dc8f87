/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill.h - a fault of the machine, not of a device: a process is killed at its n-th command (a write() or an
 * ioctl() on a device file). Before it, the command is not executed; after it, the answer is in the memory of
 * the process, where the kernel stores it before the call returns. Between two commands a process changes
 * only its own memory, so these are all the states that others can find it in.
 */
#ifndef SOFTCX_NIC_KILL_H
#define SOFTCX_NIC_KILL_H

#include <stdbool.h>
#include <stdint.h>

enum kill_moment { KILL_BEFORE, KILL_AFTER };

struct kill_fault {
	uint32_t id; /* 0: none */
	enum kill_moment moment;
	char program[16]; /* as /proc/PID/comm has it; "": any */
	uint64_t at;      /* 1 is the next command */
	uint64_t count;   /* strikes so often, 0: without end */
	uint64_t seen, struck;
};

enum { KILL_MAX = 16 }; /* spent ones included */

struct kills {
	struct kill_fault fault[KILL_MAX]; /* by age */
	unsigned n;
};

/** -ENOSPC: too many. */
int kills_add(struct kills *kills, const struct kill_fault *fault);
/** Forgets one, or all with @id 0. Returns the number of those forgotten. */
unsigned kills_clear(struct kills *kills, uint32_t id);

/** A process that runs @program is about to have a command executed, or has had one. True: kill it. */
bool kills_meet(struct kills *kills, enum kill_moment moment, const char *program);

#endif
