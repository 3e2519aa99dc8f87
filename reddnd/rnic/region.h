/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - data of chains: a file, mapped and registered in windows.
 *
 * Window number w has the IOVA (1 + w) << 40, so that an address in it is base plus offset, wherever a
 * process maps the file. A field of up to 5 bytes that a client fills in an address cannot lead out of the
 * window's terabyte, in which only the bytes of the window have the key.
 *
 * The keys are only in WQEs; clients never see them.
 */
#ifndef RNIC_REGION_H
#define RNIC_REGION_H

#include "reddnd/rnic/device.h"

struct rnic_region;

/**
 * Maps the whole file @path, shared. The file is opened for writing because before Linux 6.2 the kernel pins
 * pages for a device only through a writable mapping; the CPU never writes there. -EINVAL when it is not a
 * regular file, or is empty.
 */
int rnic_region_open(struct rnic_region **region, const char *path);
void rnic_region_close(struct rnic_region *region); /* and its windows */

const uint8_t *rnic_region_mem(const struct rnic_region *region);
uint64_t rnic_region_size(const struct rnic_region *region);
bool rnic_region_is(const struct rnic_region *a, const struct rnic_region *b); /* both are one file */

struct rnic_window {
	uint64_t iova;
	uint32_t lkey, rkey;
};

enum { RNIC_WINDOW_BITS = 40 };

/** Access of the NIC to a window. */
enum rnic_access {
	RNIC_LOCAL_READ,    /* gathers from it */
	RNIC_REMOTE_READ,   /* and loopback READs of it */
	RNIC_REMOTE_CHANGE, /* and loopback WRITEs and atomics, and scatters to it */
};

/**
 * Registers bytes [@off, @off + @size) of the file as window number @number, with a key for queues of @pd. No
 * two windows of one PD have the same number. IOVA and memory agree modulo the page size: the IOVA is a
 * multiple of 2^40 plus @off % page size.
 */
int rnic_region_window(struct rnic_region *region, struct rnic_pd *pd, unsigned number, uint64_t off,
	uint64_t size, enum rnic_access access, struct rnic_window *window);

#endif
