/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.h - the emulated hosts: their names, directories and devices.
 *
 * Each host has a directory with device files and a sysfs tree, devices mlx5_0, mlx5_1..., and rdma_cm ports
 * of its own. The directory of the first host is the NIC's; those of others are below it and have the hosts'
 * names. All hosts are on one network segment, which is inside the NIC process.
 */
#ifndef SOFTCX_PROTO_HOSTS_H
#define SOFTCX_PROTO_HOSTS_H

#include "softcx/proto/proto.h"

#include <stddef.h>

enum {
	HOSTS_MAX = 8,
	HOSTS_MAX_DEVS = 16, /* of all hosts */
};

struct host {
	char name[SOFTCX_MAX_HOST + 1];
	char dir[SOFTCX_MAX_DIR + 1]; /* set by hosts_set_dir() */
	unsigned first, ndevs;        /* devices, numbered through all hosts */
};

struct hosts {
	struct host host[HOSTS_MAX];
	unsigned n, ndevs;
};

/**
 * Reads "NAME[:DEVICES],..." or, when @list is NULL, makes one host of @ndevs devices; @ndevs is also for
 * names without a number. 0, or -EINVAL and the mistake in @why.
 */
int hosts_parse(struct hosts *hosts, const char *list, unsigned ndevs, char *why, size_t size);
/**
 * The numbers of all devices: the first of each host, then the second of each, and so on. What is dealt out
 * in this order is spread over the devices that hosts use.
 */
void hosts_deal(const struct hosts *hosts, unsigned devs[static HOSTS_MAX_DEVS]);
/** @dir: the NIC's. -ENAMETOOLONG when a directory of a host would have more than SOFTCX_MAX_DIR bytes. */
int hosts_set_dir(struct hosts *hosts, const char *dir);

#endif
