/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h - mappings of doorbell pages. Each has a userfaultfd by which the NIC notices stores (SOFTCX_GUARD
 * of proto.h), and keeps the device file open, as a mapping does on Linux (core/ib_core_uverbs.c,
 * rdma_user_mmap_io: the area has a reference to the file).
 *
 * If the process may not have a userfaultfd, nothing is guarded and the NIC polls the pages instead.
 *
 * Threads: one at a time (device.c holds its lock), except for guard_any().
 */
#ifndef SOFTCX_DRIVER_GUARD_H
#define SOFTCX_DRIVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One mapping. */
struct guard {
	void *_Atomic addr; /* NULL: free */
	int keep;           /* a descriptor of the file; -1: there was none to spare */
	size_t len;
	uint64_t file;   /* as struct channel */
	uint64_t offset; /* of mmap(2) */
	uint64_t dev, ino;
};

/**
 * Notes that page @offset of device file @file, that of descriptor @map_fd, is mapped at @addr. Takes @keep,
 * a descriptor of the file or -1. Returns a userfaultfd for the mapping, which the caller sends and closes,
 * or a negative errno.
 */
int guard_new(uint64_t file, uint64_t offset, void *addr, size_t len, int map_fd, int keep);
/** True if a noted mapping is in this range. For any thread; it may be wrong about ranges in use by others.
 */
bool guard_any(const void *addr, size_t len);
/** The mappings in this range are gone. */
void guard_unmapped(const void *addr, size_t len);

/**
 * In a forked child: calls @fn for every noted mapping that it has inherited, with a new userfaultfd or -1,
 * and forgets the others. @fn does not own the descriptor.
 */
void guard_fork_child(void (*fn)(const struct guard *guard, int uffd));

#endif
