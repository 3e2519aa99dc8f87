/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ident.h - names, GUIDs and addresses of the devices of all hosts. It implements the nic_dev functions of
 * call.h.
 *
 * Device d of the first host has 127.0.0.(d+1), and the first of them the other addresses that this machine
 * has at ident_init(). Device d of host h (counted from 0) has 127.h.0.(d+1): TCP reaches these addresses on
 * Linux without any set-up, so programs that meet over TCP can be given them as well. The first device of
 * each host has ::1, if this machine has IPv6.
 */
#ifndef SOFTCX_NIC_IDENT_H
#define SOFTCX_NIC_IDENT_H

#include "softcx/devices/profile.h"
#include "softcx/hw/hw.h"
#include "softcx/proto/hosts.h"

/** The hosts of this process, which outlive all use of them. */
void ident_init(const struct hosts *hosts);
const struct host *ident_host(unsigned dev);
/** The GIDs in the table of the device's port: on RoCE those of its addresses, nic_dev_gids(); on InfiniBand
 * one, the subnet's prefix and the GUID. */
void ident_gids(const struct profile *profile, unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids);
/** The LID of its port, which means something on InfiniBand. */
uint16_t ident_lid(unsigned dev);
/** "mlx5_0", or "HOST/mlx5_0" when there is more than one host. Returns @label. */
const char *ident_dev(unsigned dev, char label[SOFTCX_MAX_LABEL]);
/** The same for its device file, "uverbs0", or for rdma_cm of @host when @dev is negative. */
const char *ident_file(unsigned host, int dev, char label[SOFTCX_MAX_LABEL]);
/** The device that "[HOST/]mlx5_N" or "[HOST/]N" means, without a name on the first host. -ENOENT. */
int ident_find_dev(const char *label, unsigned *dev);

#endif
