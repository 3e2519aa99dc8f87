/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.h - destroys what a daemon that died has left in its device file and does not belong to anything that
 * goes on.
 *
 * Thread rules: one thread, before the file is used for anything else.
 */
#ifndef RNIC_SWEEP_H
#define RNIC_SWEEP_H

#include "reddnd/ledger/ledger.h"
#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/device.h"

/**
 * Destroys every object of device file @fd that @ledger does not keep. Returns the number of objects
 * destroyed. -EBUSY: an object cannot be destroyed, though all that could use it is gone; -EIO: the device is
 * gone; other errors of listing them. Then only closing the file helps.
 */
int rnic_sweep(int fd, const struct ledger_view *ledger);

/** Destroys the queue pairs of an inherited slot that does not go on: nothing executes its chains after this.
 * -EBUSY: the device does not let go of one, which is logged. */
int rnic_sweep_queues(struct rnic_device *dev, struct ledger_slot *slot);
/** Destroys what an inherited slot that does not go on has, and gives its memory in @arena back. What the
 * device does not let go of stays in the slot, and is logged. */
void rnic_sweep_slot(struct rnic_device *dev, struct rnic_arena *arena, struct ledger_slot *slot);

#endif
