/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysfs.h - shows the NIC's tree in place of those parts of /sys where the kernel has RDMA devices. The names
 * that programs see stay those of /sys.
 *
 * sysfs.c also interposes the functions of the C library that are about names only; preload.c has those that
 * know of device files too.
 */
#ifndef SOFTCX_DRIVER_SYSFS_H
#define SOFTCX_DRIVER_SYSFS_H

#include <limits.h>

enum { SYSFS_PATH_MAX = 512 };

/** @path, or the name in the NIC's tree that it stands for, in @buf. NULL stays NULL. */
const char *sysfs_path(const char *path, char buf[static SYSFS_PATH_MAX]);
/**
 * After @fd was opened as @path, or a name below it: puts a file that cannot be read in its place, if it is
 * an attribute of an empty GID, of which the NIC's tree has a file with an empty line. Returns @fd. Linux
 * core/sysfs.c, _show_port_gid_attr(): EINVAL, as reads of an epoll instance.
 */
int sysfs_opened(const char *path, int fd);

#endif
