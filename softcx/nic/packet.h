/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.h - what a driver sent on a socket of a device file: bytes, descriptors, and who it was (proto.h).
 */
#ifndef SOFTCX_NIC_PACKET_H
#define SOFTCX_NIC_PACKET_H

#include "softcx/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct hardware;

struct packet {
	ssize_t len;             /* bytes; a negative errno: nothing was received */
	int fds[SOFTCX_MAX_FDS]; /* of the receiver, until packet_close() */
	unsigned nfds;
	struct ucred cred; /* pid 0: none came with it */
	bool truncated;    /* it was larger, or had more descriptors */
};

/** Receives what is there, without waiting, into the @size bytes of @buf. The caller has the hardware, which
 * is given up meanwhile. */
void packet_recv(struct hardware *hardware, int fd, void *buf, size_t size, struct packet *p);
/** Closes the descriptors that nobody has taken over. */
void packet_close(struct packet *p);

#endif
