/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysfs.h - the part of sysfs that rdma-core and its tools read, as plain files. Which files:
 * libibverbs/{init,sysfs,device,cmd_device}.c and librdmacm/cma.c of rdma-core 44.
 */
#ifndef SOFTCX_NIC_SYSFS_H
#define SOFTCX_NIC_SYSFS_H

#include <stdbool.h>

/**
 * Writes the tree of devices mlx5_0.. (uverbs0..) to @dir/sys, replacing what an earlier NIC left there.
 * Addresses and GUIDs are those of call.h. 0 or a negative errno.
 */
int sysfs_write(const char *dir, unsigned ndevs);

/** The state of device @dev's port in that tree. 0 or a negative errno. */
int sysfs_port(const char *dir, unsigned dev, bool up);

#endif
