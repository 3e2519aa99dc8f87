/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * anon.h - anonymous memory that is shared (with forked children): given a file that can be handed to the
 * NIC. The kernel has one behind such a mapping, too, but lets only the privileged have a descriptor of it.
 *
 * The descriptor stays open for as long as the memory is mapped. Threads: any; nothing is locked or
 * allocated.
 */
#ifndef SOFTCX_DRIVER_ANON_H
#define SOFTCX_DRIVER_ANON_H

#include <stddef.h>

/** A descriptor of @len bytes of zeros for a shared mapping, or -1: then it has to be an anonymous one after
 * all. */
int anon_new(size_t len);
/** It is mapped at @addr, or, with MAP_FAILED, is not. */
void anon_mapped(int fd, void *addr, size_t len);
/** After munmap(2). */
void anon_unmapped(void *addr, size_t len);

#endif
