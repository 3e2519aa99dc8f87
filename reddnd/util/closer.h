/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * closer.h - closes descriptors that other processes sent. close(2) of one may wait for as long as its sender
 * likes: a TCP socket with SO_LINGER for its peer, a file of FUSE for its server. The last descriptor of a
 * file in memory gives back all of its pages, which takes seconds for some hundred gigabytes. And a Unix
 * socket that is closed with unread messages closes the descriptors that are in them.
 *
 * A close that does not return keeps its thread. What must not wait asks closer_is_full() before it takes
 * more descriptors of others.
 *
 * Thread rules: all functions may be called on any thread.
 */
#ifndef UTIL_CLOSER_H
#define UTIL_CLOSER_H

#include <stdbool.h>

enum { CLOSER_MAX = 64 };

/** Closes @fd, unless it is negative, on another thread. Does not wait. */
void closer_close(int fd);
/** The same for a connected Unix socket. The peer can still read what was sent, but send no more. */
void closer_hang_up(int sock);

/** True: CLOSER_MAX descriptors or more are not closed yet. */
bool closer_is_full(void);

#endif
