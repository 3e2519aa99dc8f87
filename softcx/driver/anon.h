/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * anon.h - anonymous memory that is shared with forked children: the driver gives it a file that it can pass
 * to the NIC. The kernel has a file behind such a mapping, too, but gives only privileged processes a
 * descriptor of it.
 *
 * The descriptor stays open for as long as the memory is mapped. Threads: any; nothing is locked or
 * allocated.
 */
#ifndef SOFTCX_DRIVER_ANON_H
#define SOFTCX_DRIVER_ANON_H

#include <stddef.h>

/** A descriptor of @len bytes of zeros for a shared mapping, or -1: then the mapping stays anonymous. */
int anon_new(size_t len);
/** After mmap(2): it is mapped at @addr, or not, if that is MAP_FAILED. */
void anon_mapped(int fd, void *addr, size_t len);
/** After munmap(2). */
void anon_unmapped(void *addr, size_t len);

#endif
