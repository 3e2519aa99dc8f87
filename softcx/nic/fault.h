/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.h - turns the words of "softcx fault" (softcx(1), "Faults") into the faults of hw/fault.h and of the
 * machine, and shows the state of ports, which faults change, in sysfs.
 */
#ifndef SOFTCX_NIC_FAULT_H
#define SOFTCX_NIC_FAULT_H

#include "softcx/hw/hw.h"
#include "softcx/proto/hosts.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A fault of the machine, not of a device: a process is killed at its n-th command (a write() or an
 * ioctl() on a device file). Before it, the command is not executed; after it, the answer is in the memory of
 * the process, where the kernel stores it before the call returns. Between two commands a process changes
 * only its own memory, so these are all the states that others can find it in.
 */

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

/** A process that runs @program is about to have a command executed, or has had one. True: kill it. */
bool kills_meet(struct kills *kills, enum kill_moment moment, const char *program);

struct faults {
	struct hw_dev *const *devs;
	unsigned ndevs;
	uint32_t last_id;
	struct kills kills;
	struct fault_port {
		const struct faults *faults;
		struct hw_dev_watch watch;
	} port[HOSTS_MAX_DEVS];
};

/** @devs outlive it; they are numbered as the hosts have them. */
void faults_init(struct faults *faults, struct hw_dev *const *devs, unsigned ndevs);
void faults_deinit(struct faults *faults); /* before the devices go; twice is fine */

/**
 * Executes the words in @text ("add drop --at 5", "list", "clear 3"), which it modifies, and sends the answer
 * to socket @fd: '+' and text, JSON for "list"; or '-' and the mistake.
 */
void faults_command(struct faults *faults, char *text, int fd);

#endif
