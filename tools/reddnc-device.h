/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnc-device.h - the device that "reddnc run" uses: opened, and tried as reddnd tries it.
 */
#ifndef TOOLS_REDDNC_DEVICE_H
#define TOOLS_REDDNC_DEVICE_H

#include "reddnd/program/program.h"
#include "reddnd/rnic/master-qp.h"

struct reddnc_device {
	struct rnic_arena *arena;
	struct rnic_device *dev;
	struct master_qp master;
};

/**
 * Opens device @name, "": the only one there is, and tries what it does. @target, what the command line asks
 * for, becomes what programs are compiled for: the device without the masked atomics, or with the groups,
 * that were asked for. 0, or an exit status of sysexits.h, with the reason on stderr: the device cannot be
 * used, or does not do what was asked for.
 */
int reddnc_device_open(struct reddnc_device *d, const char *name, struct program_target *target);
void reddnc_device_close(struct reddnc_device *d); /* fine on one that is all zero */

#endif
