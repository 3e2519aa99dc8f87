/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own-path.h - how queues of the device reach each other.
 *
 * Where a RoCE port has forced loopback (QPC address path `fl`), they need no address. Where it has not,
 * their packets go to the port's own GID and MAC address, and on InfiniBand to its own LID, as rdma-core's
 * dr_prepare_qp_to_rts() does it: a port sends such packets back to itself.
 */
#ifndef RNIC_OWN_PATH_H
#define RNIC_OWN_PATH_H

#include "reddnd/rnic/internal.h"

/** Sets dev->own, after dev->caps and dev->pd. Errors have been logged. */
int rnic_own_path_find(struct rnic_device *dev);
/** The path by GID or LID to the port of @to, which may be @dev itself, forced loopback or not. Errors have
 * been logged. */
int rnic_path_to(struct rnic_device *dev, struct rnic_device *to, struct rnic_path *path);

#endif
