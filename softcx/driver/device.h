/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - the driver's end of a device file: opening it, and shipping system calls to the NIC.
 * It understands no command.
 *
 * The driver asks the kernel each time which socket a descriptor is (by its cookie), and once for each socket
 * whether it is a device file (by the name of its peer). So it knows copies made by dup, fork, exec or
 * SCM_RIGHTS without interposing any of those. It finds the command channel of an open file by the cookie.
 *
 * Threads: any. One call at a time per process, in the order in which threads ask; waiting for an event is
 * done outside that lock.
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

/** True if @fd is a device file; then with its number. Does not change errno. */
bool dev_is(int fd, dev_t *rdev);

/** The open file of device file @fd, by a number that no other one gets; 0: it is none. Does not change
 * errno.
 */
uint64_t dev_file(int fd);

/* For descriptors and their dev_file(). -EBADF: another thread has closed @fd since. */
ssize_t dev_write(int fd, uint64_t file, const void *buf, size_t len);
int dev_ioctl(int fd, uint64_t file, struct ib_uverbs_ioctl_hdr *hdr);
/** The descriptor (the caller closes it) and the offset to map for mmap(2) of the device. */
int dev_mmap(int fd, uint64_t file, uint64_t offset, uint64_t len, int *map_fd, uint64_t *map_offset);
/** After the mapping: @map_fd, which is page @offset of @fd, is mapped at @addr. */
void dev_mapped(int fd, uint64_t file, uint64_t offset, uint64_t len, void *addr, int map_fd);
/** Before munmap(2) of anything: afterwards another thread may have a new mapping there. */
void dev_unmap(const void *addr, size_t len);

/* Around fork: no call is under way while it happens; the child starts without channels. */
void dev_fork_prepare(void);
void dev_fork_parent(void);
void dev_fork_child(void);

#endif
