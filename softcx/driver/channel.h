/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel.h - the command channels of this process (proto.h). An open file is known by the cookie of its
 * socket, a number that no other one gets.
 *
 * Files may be many, and a channel takes a descriptor of the NIC: so those that were not used for the longest
 * time are closed, and opened again when they are.
 *
 * Threads: one at a time (device.c holds its lock). Errors: negative errno.
 */
#ifndef SOFTCX_DRIVER_CHANNEL_H
#define SOFTCX_DRIVER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/** That of one file. */
struct channel {
	uint64_t file; /* cookie of the file's socket; 0: free */
	uint64_t self; /* cookie of @fd: applications close descriptors they never opened */
	int fd;
	unsigned creds; /* creds_now() when it began */
	bool stays;     /* pages of the file are mapped: a forked child reports them here */
	uint64_t used;  /* of the uses so far, the last one */
};

/**
 * A descriptor of the file that no other thread knows of: a system call keeps its file open until it returns.
 * @fd itself where there is no room for another one. -EBADF: it is closed, or it is something else by now.
 */
int channel_hold(int fd, uint64_t file);
/** Closes it. Fine with an error in @held. */
void channel_release(int held, int fd);

/** Opens the channel of file @fd; @opener: which this process has just opened. -EIO: the NIC is gone. */
int channel_new(int fd, bool opener, struct channel **out);
/** The channel of @file, which @fd is; opens one if there is none. */
int channel_get(int fd, uint64_t file, struct channel **out);
/** The channel of @file that this process, or the parent of a forked one, has; NULL: none. */
struct channel *channel_find(uint64_t file);
void channel_drop(struct channel *ch);

/** Sends one packet. -EFAULT when the application's buffers are not readable. */
int channel_send(const struct channel *ch, struct iovec *iov, size_t niov, const int *fds, unsigned nfds);
/** Receives one packet; @fds has room for SOFTCX_MAX_FDS. Its length, or -EIO: the NIC is gone. */
ssize_t channel_recv(const struct channel *ch, void *buf, size_t size, int *fds, unsigned *nfds);

/** In a forked child: forgets those of the parent. */
void channels_fork_child(void);

#endif
