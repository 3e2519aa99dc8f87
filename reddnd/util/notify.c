/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/notify.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/rights.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_S = 1 };

/* False: there is no manager, or its address is none of a Unix socket */
static bool manager(struct sockaddr_un *sun, socklen_t *len)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	if ((n < 2) || n >= sizeof(sun->sun_path) || (*path != '/' && *path != '@'))
		return false;
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(sun->sun_path, path, n);
	if (*path == '@')
		sun->sun_path[0] = '\0';
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

static int send_to_manager(const char *text, int fd, int flags)
{
	CLEANUP(cleanup_close) int sock = -1;
	struct sockaddr_un sun;
	socklen_t len;

	if (!manager(&sun, &len))
		return 0;
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&sun, len) < 0 ||
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = PATIENCE_S},
			sizeof(struct timeval)) < 0)
		return -errno;
	return rights_send(sock, text, strlen(text), MSG_NOSIGNAL | flags, fd) < 0 ? -errno : 0;
}

void notify_status(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	send_to_manager(text, -1, MSG_DONTWAIT);
}

/* Once: each message would say so */
static void log_refusal(void)
{
	static atomic_flag logged = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&logged))
		log_error("user %u may not send to the service manager at %s, so nothing is kept for the "
			  "next daemon: start the manager as this user (reddnd-run(8))",
			(unsigned)geteuid(), getenv("NOTIFY_SOCKET"));
}

int notify_send(const char *text, int fd)
{
	int r = send_to_manager(text, fd, 0);

	if (r == -EACCES) {
		log_refusal();
		return r;
	}
	return r < 0 ? log_errno(r, "the service manager does not take \"%.*s\"", (int)strcspn(text, "\n"),
			       text)
		     : 0;
}
