/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/driver/remote-copy.h"

#include "softcx/driver/sys.h"
#include "softcx/proto/proto.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>

static int ours = -1, theirs = -1;

static ssize_t transfer(int sock, void *head, size_t head_len, void *body, size_t len, int flags)
{
	struct iovec iov[2] = {{head, head_len}, {body, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	return flags < 0 ? sendmsg(sock, &msg, MSG_NOSIGNAL) : recvmsg(sock, &msg, flags);
}

/** The kernel reads and writes the memory, so an access to a page that is unmapped is EFAULT and not a fault.
 */
static void *serve(void *arg)
{
	int sock = (int)(intptr_t)arg;
	struct softcx_copy copy;

	while (recv(sock, &copy, sizeof(copy), MSG_PEEK) == (ssize_t)sizeof(copy)) {
		struct softcx_copied copied = {.id = copy.id};
		void *body = (void *)(uintptr_t)copy.va;
		size_t len = copy.store ? copy.len : 0;
		ssize_t n = transfer(sock, &copy, sizeof(copy), body, len, 0);

		if (n != (ssize_t)(sizeof(copy) + len))
			copied.rc = EFAULT;
		else if (!copy.store && transfer(sock, &copied, sizeof(copied), body, copy.len, -1) >= 0)
			continue;
		else if (!copy.store)
			copied.rc = EFAULT;
		if (send(sock, &copied, sizeof(copied), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

int remote_copy_socket(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int pair[2], rc;

	if (theirs >= 0)
		return theirs;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		pair[i] = sys_moved_high(pair[i]);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, serve, (void *)(intptr_t)pair[0]);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		sys_close(pair[0]);
		sys_close(pair[1]);
		return -rc;
	}
	ours = pair[0];
	theirs = pair[1];
	return theirs;
}

void remote_copy_fork_child(void)
{
	if (theirs < 0)
		return;
	sys_close(ours);
	sys_close(theirs);
	ours = theirs = -1;
}
