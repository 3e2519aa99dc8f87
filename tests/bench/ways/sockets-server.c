/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets-server - a table behind sockets: "sockets-server TABLE ADDRESS PORT" answers "mg KEY v" of
 * memcached's meta protocol, one client after the other. It uses only what librspreload.so of rdma-core
 * intercepts: no flags in the type of a socket, no accept4(), no epoll. So the same program serves over TCP,
 * and with that library over the rsockets of librdmacm. Prints "listening" when clients can connect; ends on
 * SIGTERM or SIGINT.
 */
#include "libclient/reddn-table.h"
#include "tools/common/tool.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IN = 1 << 16, OUT = 1 << 18 };

static char in[IN], out[OUT];
static size_t used; /* of out */

static void on_signal(int sig)
{
	_exit(sig == SIGTERM || sig == SIGINT ? 0 : 1);
}

static bool flush(int fd)
{
	for (size_t at = 0; at < used;) {
		ssize_t n = send(fd, out + at, used - at, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	used = 0;
	return true;
}

/* Adds the answer to a line "mg KEY v" to those that are sent next. */
static bool answer(int fd, struct reddn_table *t, const char *line, size_t len)
{
	const char *key = line + 3, *end = memchr(key, ' ', len - 3);
	const void *value;
	size_t value_len;

	if (memcmp(line, "mg ", 3) != 0 || !end || end == key)
		return false;
	if (reddn_table_get(t, key, (size_t)(end - key), &value, &value_len) != 0)
		value_len = 0, value = NULL;
	if (used + value_len + 64 > OUT && !flush(fd))
		return false;
	if (!value) {
		memcpy(out + used, "EN\r\n", 4);
		used += 4;
		return true;
	}
	used += (size_t)sprintf(out + used, "VA %zu\r\n", value_len);
	memcpy(out + used, value, value_len);
	memcpy(out + used + value_len, "\r\n", 2);
	used += value_len + 2;
	return true;
}

/* Until the client leaves, or sends anything else. */
static void serve(int fd, struct reddn_table *t)
{
	size_t have = 0;
	ssize_t n;

	used = 0;
	while (have < IN && (n = recv(fd, in + have, IN - have, 0)) > 0) {
		char *line = in, *end;

		have += (size_t)n;
		while ((end = memchr(line, '\n', (size_t)(in + have - line)))) {
			if (end - line < 4 || !answer(fd, t, line, (size_t)(end - line)))
				return;
			line = end + 1;
		}
		have -= (size_t)(line - in);
		memmove(in, line, have);
		if (!flush(fd))
			return;
	}
}

static int listen_on(const char *address, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *ai;
	int one = 1, fd;

	if (getaddrinfo(address, port, &hints, &ai)) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
			       bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 16) < 0)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct reddn_table *t;
	char err[256];
	int fd, one = 1;

	if (argc != 4)
		return tool_complain("usage: sockets-server TABLE ADDRESS PORT");
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if (reddn_table_open(&t, argv[1], 0, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	fd = listen_on(argv[2], argv[3]);
	if (fd < 0)
		return tool_complain("%s port %s: %s", argv[2], argv[3], strerror(errno));
	puts("listening");
	fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client < 0)
			return tool_complain("accept: %s", strerror(errno));
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serve(client, t);
		close(client);
	}
}
