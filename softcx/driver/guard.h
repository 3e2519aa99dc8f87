/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h - mappings of doorbell pages, of which the NIC wants to hear when they are stored to (SOFTCX_GUARD
 * of proto.h).
 *
 * Where the process may have no userfaultfd nothing is guarded, and the NIC looks at the pages from time to
 * time instead.
 *
 * Threads: one at a time (device.c holds its lock).
 */
#ifndef SOFTCX_DRIVER_GUARD_H
#define SOFTCX_DRIVER_GUARD_H

#include <stddef.h>
#include <stdint.h>

/** Of one mapping. */
struct guard {
	void *addr; /* NULL: free */
	size_t len;
	uint64_t file;   /* as struct channel */
	uint64_t offset; /* of mmap(2) */
	uint64_t dev, ino;
};

/**
 * Notes that page @offset of device file @file, which is that of descriptor @map_fd, is mapped at @addr. A
 * userfaultfd for it, which the caller sends and closes, or a negative errno.
 */
int guard_new(uint64_t file, uint64_t offset, void *addr, size_t len, int map_fd);
/** Forgets the mappings of @file. */
void guard_forget(uint64_t file);

/**
 * In a forked child: calls @fn for every noted mapping that it has inherited, with a new userfaultfd, which
 * @fn does not own, or -1; then forgets all.
 */
void guard_fork_child(void (*fn)(const struct guard *guard, int uffd));

#endif
