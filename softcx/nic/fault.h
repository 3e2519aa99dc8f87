/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.h - turns the words of "softcx fault" (softcx(1), "Faults") into the faults of hw/fault.h and kill.h,
 * and shows the state of ports, which faults change, in sysfs.
 */
#ifndef SOFTCX_NIC_FAULT_H
#define SOFTCX_NIC_FAULT_H

#include "softcx/hw/hw.h"
#include "softcx/nic/kill.h"
#include "softcx/proto/hosts.h"

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
