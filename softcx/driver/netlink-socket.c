/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * netlink-socket.c - sockets of NETLINK_RDMA: the functions of the C library that programs call with them.
 * Such a socket is a datagram socket that is connected to itself, so that answers (rdma-netlink.h) wait in it
 * until they are read. It can be polled, closed and inherited as any other.
 */
#include "softcx/driver/next.h"
#include "softcx/driver/rdma-netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT NEXT_EXPORT

enum {
	MAX_FDS = 1024,
	NAME_LEN = 6 /* of an address that Linux chooses: a zero and five digits */
};

/* The addresses of such sockets: a descriptor may have been closed, and be something else by now */
static struct {
	_Atomic bool used;
	char name[NAME_LEN];
} sockets[MAX_FDS];

static bool address_of(int fd, struct sockaddr_un *sun)
{
	NEXT(getsockname);
	socklen_t len = sizeof(*sun);

	return next(fd, (struct sockaddr *)sun, &len) == 0 && sun->sun_family == AF_UNIX &&
	       len == offsetof(struct sockaddr_un, sun_path) + NAME_LEN;
}

static bool is_ours(int fd)
{
	struct sockaddr_un sun;
	int saved = errno;
	bool is;

	if (fd < 0 || fd >= MAX_FDS || !atomic_load(&sockets[fd].used))
		return false;
	is = address_of(fd, &sun) && memcmp(sun.sun_path, sockets[fd].name, NAME_LEN) == 0;
	errno = saved;
	return is;
}

static int open_socket(int type)
{
	const socklen_t any = sizeof(sa_family_t);
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | (type & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0);

	if (fd < 0)
		return -errno;
	if (fd >= MAX_FDS || bind(fd, (struct sockaddr *)&sun, any) < 0 || !address_of(fd, &sun) ||
		connect(fd, (struct sockaddr *)&sun, offsetof(struct sockaddr_un, sun_path) + NAME_LEN) < 0) {
		close(fd);
		return -EMFILE;
	}
	memcpy(sockets[fd].name, sun.sun_path, NAME_LEN);
	atomic_store(&sockets[fd].used, true);
	return fd;
}

/* ---- the C library ---------------------------------------------------------------------- */

static int fail(int rc)
{
	errno = -rc;
	return -1;
}

EXPORT int socket(int domain, int type, int protocol)
{
	NEXT(socket);
	int fd;

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return next(domain, type, protocol);
	fd = open_socket(type);
	return fd < 0 ? fail(fd) : fd;
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	NEXT(bind);
	return is_ours(fd) ? 0 : next(fd, address, len);
}

/** Who sends and receives: the program by the number of its process, the kernel as 0. */
static void name_end(void *name, socklen_t *len, uint32_t pid)
{
	const struct sockaddr_nl end = {.nl_family = AF_NETLINK, .nl_pid = pid};

	if (name)
		memcpy(name, &end, *len < sizeof(end) ? *len : sizeof(end));
	*len = sizeof(end);
}

EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *len)
{
	NEXT(getsockname);
	if (!is_ours(fd))
		return next(fd, address, len);
	name_end(address, len, (uint32_t)getpid());
	return 0;
}

EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	NEXT(setsockopt);
	return level == SOL_NETLINK && is_ours(fd) ? 0 : next(fd, level, name, value, len);
}

static ssize_t ask(int fd, const void *buf, size_t len)
{
	int rc = rdma_netlink_ask(fd, buf, len);

	return rc < 0 ? fail(rc) : (ssize_t)len;
}

EXPORT ssize_t sendto(
	int fd, const void *buf, size_t len, int flags, const struct sockaddr *to, socklen_t tolen)
{
	NEXT(sendto);
	return is_ours(fd) ? ask(fd, buf, len) : next(fd, buf, len, flags, to, tolen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	NEXT(sendmsg);
	return is_ours(fd) && msg->msg_iovlen == 1
		       ? ask(fd, msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len)
		       : next(fd, msg, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	NEXT(recvmsg);
	ssize_t n = next(fd, msg, flags);

	if (n >= 0 && is_ours(fd))
		name_end(msg->msg_name, &msg->msg_namelen, 0);
	return n;
}
