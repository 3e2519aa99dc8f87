/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rights.h - a descriptor that goes to another process with the bytes of a Unix socket (unix(7), SCM_RIGHTS).
 */
#ifndef UTIL_RIGHTS_H
#define UTIL_RIGHTS_H

#include <stddef.h>
#include <sys/types.h>

/** As send(2) with @flags; @passed, unless it is negative, goes with the first byte, and stays the caller's.
 */
ssize_t rights_send(int sock, const void *bytes, size_t size, int flags, int passed);

#endif
