/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * in-front.c - preloaded into memcached by tests, in front of libreddn-memcached.so: it calls bind(2) and
 * listen(2) for memcached. With $PAST_BIND it binds by the system call itself.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* volatile: no call is the last one of its function, which could leave out its place to return to */
EXPORT int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
	__typeof__(&bind) next = (__typeof__(&bind))dlsym(RTLD_NEXT, "bind");
	volatile int r = getenv("PAST_BIND") ? (int)syscall(SYS_bind, fd, address.__sockaddr__, len)
					     : next(fd, address, len);

	return r;
}

EXPORT int listen(int fd, int backlog)
{
	__typeof__(&listen) next = (__typeof__(&listen))dlsym(RTLD_NEXT, "listen");
	volatile int r = next(fd, backlog);

	return r;
}
