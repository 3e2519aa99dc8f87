/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - data that chains read: a file, mapped and registered piece by piece.
 *
 * The NIC knows each piece (window) under an IOVA chosen here, window number w at (1 + w) << 40: an address
 * in it is base plus offset, whoever maps the file wherever; and a field of up to 5 bytes that a client fills
 * in an address can never lead out of the window's terabyte, of which only the window's bytes have the key.
 *
 * The keys go into WQEs and nowhere else; clients never see them.
 */
#ifndef RNIC_REGION_H
#define RNIC_REGION_H

#include "reddnd/rnic/device.h"

struct rnic_region;

/**
 * Maps the whole file @path, shared. Opened for writing too: before Linux 6.2 the kernel pins pages for a
 * device only through a mapping that may be written. The CPU never writes there. -EINVAL when it is no
 * regular file or empty.
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

/** What the NIC may do with a window. */
enum rnic_access {
	RNIC_LOCAL_READ,    /* gather from it */
	RNIC_REMOTE_READ,   /* and a loopback READ may name it */
	RNIC_REMOTE_CHANGE, /* and WRITEs and atomics too; and data may be scattered to it */
};

/**
 * Registers bytes [@off, @off + @size) of the file as window number @number, with a key for the queues of
 * @pd: of one PD no two windows have the same number. IOVA and memory agree modulo the page size, so the IOVA
 * is a multiple of 2^40 when
 * @off is page aligned, otherwise @off % page more.
 */
int rnic_region_window(struct rnic_region *region, struct rnic_pd *pd, unsigned number, uint64_t off,
	uint64_t size, enum rnic_access access, struct rnic_window *window);

#endif
