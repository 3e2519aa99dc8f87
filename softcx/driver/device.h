/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - the driver's end of a device file: opening it, and shipping system calls to the NIC.
 * It understands no command.
 *
 * Which descriptor is a device file is asked of the kernel each time (the name of the socket's peer), so
 * copies made by dup, fork, exec or SCM_RIGHTS are known without interposing any of those. The command
 * channel of an open file is found by the socket's cookie.
 *
 * Threads: any. One call at a time per process; waiting for an event is done outside that lock.
 * Errors: negative errno.
 */
#ifndef SOFTCX_DRIVER_DEVICE_H
#define SOFTCX_DRIVER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ib_uverbs_ioctl_hdr;

/** Name of the device when @path is a device file that a NIC could offer, else NULL. */
const char *dev_name(const char *path);
/** Opens device @name (see dev_name). A descriptor, or -ENOENT, -ENODEV (no NIC), -EACCES... */
int dev_open(const char *name, int flags);
/** stat(2) of device @name: 0 and its number, or -ENOENT. */
int dev_stat(const char *name, dev_t *rdev);

/** Whether @fd is a device file, and its number. Leaves errno alone. */
bool dev_is(int fd, dev_t *rdev);

/* For descriptors that dev_is() knows. */
ssize_t dev_write(int fd, const void *buf, size_t len);
int dev_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr);
/** What to map for mmap(2) of the device: a descriptor (the caller closes it) and the offset in it. */
int dev_mmap(int fd, uint64_t offset, uint64_t len, int *map_fd, uint64_t *map_offset);
/** That was done: @map_fd, which is page @offset of @fd, is mapped at @addr. */
void dev_mapped(int fd, uint64_t offset, uint64_t len, void *addr, int map_fd);

/* Around fork: no call is under way while it happens; the child starts without channels. */
void dev_fork_prepare(void);
void dev_fork_parent(void);
void dev_fork_child(void);

#endif
