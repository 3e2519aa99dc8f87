/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.h - what the softcx tool says about faults (softcx(1), "Faults"), turned into those of hw/fault.h;
 * and the state of ports in sysfs, which faults change.
 */
#ifndef SOFTCX_NIC_FAULT_H
#define SOFTCX_NIC_FAULT_H

#include "softcx/hw/hw.h"
#include "softcx/proto/hosts.h"

struct faults {
	struct hw_dev *const *devs;
	unsigned ndevs;
	uint32_t last_id;
	struct fault_port {
		const struct faults *faults;
		struct hw_dev_watch watch;
	} port[HOSTS_MAX_DEVS];
};

/** @devs outlive it; they are numbered as the hosts have them. */
void faults_init(struct faults *faults, struct hw_dev *const *devs, unsigned ndevs);
void faults_deinit(struct faults *faults); /* before the devices go; twice is fine */

/**
 * Does what the words in @text say ("add drop --at 5", "list", "clear 3"), which it cuts up, and sends the
 * answer to socket
 * @fd: '+' and text, JSON for "list"; or '-' and what is wrong.
 */
void faults_command(struct faults *faults, char *text, int fd);

#endif
