/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/packet.h"

#include "softcx/nic/hardware.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void take_fds(struct packet *p, const struct cmsghdr *c)
{
	const int *fds = (const int *)(const void *)CMSG_DATA(c);
	size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		if (p->nfds < SOFTCX_MAX_FDS) {
			p->fds[p->nfds++] = fds[i];
		} else {
			close(fds[i]);
			p->truncated = true;
		}
	}
}

void packet_recv(struct hardware *hardware, int fd, void *buf, size_t size, struct packet *p)
{
	/* Without credentials in it, it has room for some more descriptors, and the kernel fills it. */
	union {
		struct cmsghdr hdr;
		char space[CMSG_SPACE(SOFTCX_MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {buf, size};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memset(p, 0, sizeof(*p));
	hardware_leave(hardware);
	p->len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (p->len < 0)
		p->len = -errno;
	hardware_enter(hardware);
	if (p->len < 0)
		return;
	p->truncated = msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			take_fds(p, c);
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&p->cred, CMSG_DATA(c), sizeof(p->cred));
		}
	}
}

void packet_close(struct packet *p)
{
	for (unsigned i = 0; i < p->nfds; i++)
		close(p->fds[i]);
	p->nfds = 0;
}
