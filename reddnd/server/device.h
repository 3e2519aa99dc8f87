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
 * Runs chains on @dev through @master, and notes what the device does that firmware does not report
 * (rnic_device_set_observed()); whether a SEND_EN heeds a fence only if @fences, else that is not relied on.
 * -errno: it does not run chains as they need it; logged.
 */
int device_test(struct rnic_device *dev, struct master_qp *master, bool fences);

#endif
