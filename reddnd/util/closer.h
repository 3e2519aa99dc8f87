/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * closer.h - closes descriptors that other processes sent, on threads. close(2) of one may wait for as long
 * as its sender likes: a TCP socket with SO_LINGER for its peer, a file of FUSE for its server. The last
 * descriptor of a file in memory gives back all of its pages, which takes seconds for some hundred gigabytes.
 * And a Unix socket that is closed with unread messages closes the descriptors that are in them.
 *
 * A wait that a signal can end, such as that for a lingering socket, is ended: the kernel goes on with the
 * socket alone. A wait of another kind keeps its thread. It keeps only threads of the user who sent the
 * descriptor: each user has CLOSER_USER_MAX threads for descriptors of each kind, and the users that are
 * neither root nor that of this process have CLOSER_OTHERS_MAX together. Descriptors that were taken keep
 * none of those that were not: only close(2) of a descriptor that this process has asks a server of FUSE.
 *
 * Thread rules: all functions may be called on any thread.
 */
#ifndef UTIL_CLOSER_H
#define UTIL_CLOSER_H

#include <stdbool.h>
#include <sys/types.h>

enum { CLOSER_USER_MAX = 8, CLOSER_OTHERS_MAX = 64 };

enum closer_kind {
	CLOSER_TAKEN, /* from a message */
	CLOSER_PEER,  /* a connection, with the descriptors in messages that were not read */
	CLOSER_KINDS,
};

/** Closes @fd, which came from a process of @user, unless it is negative. Does not wait. */
void closer_close(uid_t user, int fd);
/** Closes a Unix socket that is connected to a process of @user: at once, if all messages were read. Does not
 * wait. The peer can still read what was sent, but send no more. */
void closer_hang_up(uid_t user, int sock);

/** True: as many descriptors of @user, or of all users, are not closed yet as threads may be waiting. Take no
 * more of that kind from @user. Root and the user of this process are not held back, nor counted among all.
 */
bool closer_is_full(uid_t user, enum closer_kind kind);

#endif
