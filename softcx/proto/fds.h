/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fds.h - descriptors that go with a message over a Unix socket.
 */
#ifndef SOFTCX_PROTO_FDS_H
#define SOFTCX_PROTO_FDS_H

#include <string.h>
#include <sys/socket.h>

/** @msg gets @n descriptors, 0 is fine. @control is room for CMSG_SPACE(@n * sizeof(int)) bytes, which the
 * caller keeps until the message is sent. */
static inline void softcx_put_fds(struct msghdr *msg, struct cmsghdr *control, const int *fds, unsigned n)
{
	if (!n)
		return;
	memset(control, 0, CMSG_SPACE(n * sizeof(int)));
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(control), fds, n * sizeof(int));
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(n * sizeof(int));
}

#endif
