/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h - mappings of doorbell pages, with a userfaultfd by which the NIC notices stores (SOFTCX_GUARD of
 * proto.h).
 *
 * If the process may not have a userfaultfd, nothing is guarded and the NIC polls the pages instead.
 *
 * Threads: one at a time (device.c holds its lock).
 */
#ifndef SOFTCX_DRIVER_GUARD_H
#define SOFTCX_DRIVER_GUARD_H

#include <stddef.h>
#include <stdint.h>

/** One mapping. */
struct guard {
	void *addr; /* NULL: free */
	size_t len;
	uint64_t file;   /* as struct channel */
	uint64_t offset; /* of mmap(2) */
	uint64_t dev, ino;
};

/**
 * Notes that page @offset of device file @file, that of descriptor @map_fd, is mapped at @addr. Returns a
 * userfaultfd for it, which the caller sends and closes, or a negative errno.
 */
int guard_new(uint64_t file, uint64_t offset, void *addr, size_t len, int map_fd);
/** Forgets the mappings of @file. */
void guard_forget(uint64_t file);

/**
 * In a forked child: calls @fn for every noted mapping that it has inherited, with a new userfaultfd or -1,
 * then forgets all. @fn does not own the descriptor.
 */
void guard_fork_child(void (*fn)(const struct guard *guard, int uffd));

#endif
