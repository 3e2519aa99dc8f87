/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * channel.h - command channels of an open file: one for each process image that uses it, on which its calls
 * arrive and are answered one after the other (proto.h). A call that waits for an answer about memory does
 * not hold up those of other channels.
 *
 * A channel ends by itself when the process closes its end, or sends what is no call.
 */
#ifndef SOFTCX_NIC_CHANNEL_H
#define SOFTCX_NIC_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>

struct file;

/**
 * Adds the channel @fd, which it takes over; @opener: of the image that opened the file. Sets @pid to its
 * process. -EPROTOTYPE: no end of a pair of another process's sockets.
 */
int channel_add(struct file *file, int fd, bool opener, pid_t *pid);
/** Ends all channels of @file, and the calls that are under way. */
void channels_clear(struct file *file);

#endif
