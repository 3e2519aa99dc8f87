/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/rights.h"

#include <string.h>
#include <sys/socket.h>

ssize_t rights_send(int sock, const void *bytes, size_t size, int flags, int passed)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} rights = {.head = {.cmsg_level = SOL_SOCKET,
			    .cmsg_type = SCM_RIGHTS,
			    .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec iov = {(void *)bytes, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (passed >= 0) {
		memcpy(CMSG_DATA(&rights.head), &passed, sizeof(passed));
		msg.msg_control = &rights;
		msg.msg_controllen = sizeof(rights);
	}
	return sendmsg(sock, &msg, flags);
}
