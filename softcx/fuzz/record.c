/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.c - a library to preload beside the driver: appends the driver's messages to the file
 * $SOFTCX_RECORD, in the format of conv.h. The driver makes a socket pair for each open file, greets the NIC
 * with one end and sends calls through the other.
 */
#include "softcx/fuzz/conv.h"
#include "util/array.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_pair; /* the near end of the pair that was made last */
static uint64_t known[4096];
static unsigned nknown;

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void give(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(take, give, give);
}

static uint64_t cookie(int fd)
{
	uint64_t id = 0;
	socklen_t len = sizeof(id);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &id, &len) < 0 ? 0 : id;
}

static void append(uint32_t kind, uint64_t file, const struct iovec *iov, size_t niov)
{
	const char *path = getenv("SOFTCX_RECORD");
	struct conv_record rec = {.kind = kind, .file = file};
	uint8_t *all;
	size_t at = sizeof(rec);
	int fd;

	for (size_t i = 0; i < niov; i++)
		rec.len += (uint32_t)iov[i].iov_len;
	all = path ? malloc(sizeof(rec) + rec.len) : NULL;
	if (!all)
		return;
	memcpy(all, &rec, sizeof(rec));
	/* Calls with pointers to nowhere are not recorded. */
	for (size_t i = 0; i < niov; at += iov[i++].iov_len) {
		struct iovec to = {all + at, iov[i].iov_len};

		if (process_vm_readv(getpid(), &to, 1, &iov[i], 1, 0) != (ssize_t)iov[i].iov_len) {
			free(all);
			return;
		}
	}
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	/* one call: processes write in turn */
	if (fd >= 0 && syscall(SYS_write, fd, all, at) >= 0)
		close(fd);
	free(all);
}

static void note_greeting(int fd)
{
	struct sockaddr_un sun = {0};
	socklen_t len = sizeof(sun);
	const char *name;

	if (getpeername(fd, (struct sockaddr *)&sun, &len) < 0 || sun.sun_family != AF_UNIX)
		return;
	name = strrchr(sun.sun_path, '/');
	if (!name || strncmp(name + 1, SOFTCX_SOCKET_PREFIX, strlen(SOFTCX_SOCKET_PREFIX)) != 0)
		return;
	name += 1 + strlen(SOFTCX_SOCKET_PREFIX);
	if (nknown < COUNT(known))
		known[nknown++] = last_pair;
	append(CONV_OPEN, last_pair, &(struct iovec){(void *)(uintptr_t)name, strlen(name)}, 1);
}

static void note(int fd, const struct msghdr *msg)
{
	const struct softcx_request *req = msg->msg_iovlen ? msg->msg_iov[0].iov_base : NULL;
	uint64_t id = cookie(fd);

	if (msg->msg_iovlen == 1 && msg->msg_iov[0].iov_len == sizeof(struct softcx_hello) &&
		msg->msg_controllen) {
		note_greeting(fd);
		return;
	}
	for (unsigned i = nknown; i-- > 0;) {
		if (known[i] != id)
			continue;
		if (req && (req->op == SOFTCX_WRITE || req->op == SOFTCX_IOCTL || req->op == SOFTCX_MMAP))
			append(CONV_REQUEST, id, msg->msg_iov, msg->msg_iovlen);
		return;
	}
}

__attribute__((visibility("default"))) int socketpair(int domain, int type, int protocol, int ends[2])
{
	int (*next)(int, int, int, int[2]) = (__typeof__(next))dlsym(RTLD_NEXT, "socketpair");
	int rc = next(domain, type, protocol, ends);

	if (rc == 0 && domain == AF_UNIX) {
		pthread_mutex_lock(&lock);
		last_pair = cookie(ends[0]);
		pthread_mutex_unlock(&lock);
	}
	return rc;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) = (__typeof__(next))dlsym(RTLD_NEXT, "sendmsg");

	pthread_mutex_lock(&lock);
	note(fd, msg);
	pthread_mutex_unlock(&lock);
	return next(fd, msg, flags);
}
