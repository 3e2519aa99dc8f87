/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysfs.h - the part of sysfs that rdma-core and its tools read, as plain files. The files are those that
 * libibverbs/{init,sysfs,device,cmd_device}.c and librdmacm/cma.c of rdma-core 44 read.
 */
#ifndef SOFTCX_NIC_SYSFS_H
#define SOFTCX_NIC_SYSFS_H

#include "softcx/devices/profile.h"
#include "softcx/proto/hosts.h"

#include <stdbool.h>

/**
 * Writes the tree of a host's devices mlx5_0.. (uverbs0..) to "sys" in its directory, replacing what an
 * earlier NIC left there. Addresses and GUIDs are those of call.h. 0 or a negative errno.
 */
int sysfs_write(const struct host *host, const struct profile *profile);

/** The state of the port of device @dev (of all hosts) in that tree. 0 or a negative errno. */
int sysfs_port(unsigned dev, bool up);

#endif
