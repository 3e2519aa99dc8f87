/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - opens the device that the daemon serves on, and finds out what it does.
 */
#ifndef SERVER_DEVICE_H
#define SERVER_DEVICE_H

#include "reddnd/rnic/cm.h"
#include "reddnd/rnic/master-qp.h"

/**
 * Opens the device @name; if that is "", the one that an address of @cm belongs to; else the first one.
 * -EINVAL if @name and the addresses disagree. Errors have been logged.
 */
int device_open(struct rnic_device **dev, const char *name, const struct rnic_cm *cm, struct ledger *ledger);

/**
 * If @dev may run chains, makes @master in @arena, runs chains through it, and notes what the device does
 * that firmware does not report (rnic_device_set_observed()); whether a SEND_EN heeds a fence only if
 * @fences, else that is not relied on. If they do not run as they must, the device is one that runs none
 * (rnic_device_deny_chains()); where @in_use, chains of a daemon before this one run on it, and that is an
 * error; they may have all of @arena, so the chains run in an arena of their own. So is a shortage of memory
 * or the like in any case, because it does not tell what the device can do. Errors have been logged.
 */
int device_test(struct rnic_device *dev, struct rnic_arena *arena, struct master_qp *master, bool fences,
	bool in_use);

#endif
