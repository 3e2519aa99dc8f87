/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/talk.h"

#include "util/cleanup.h"
#include "util/host.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NO_WAIT = 0 };

static int refuse(char *why, size_t size, int error, const char *server, const char *words)
{
	snprintf(why, size, "%s: %s", server, words);
	return error;
}

/* The time of a socket is also that of connect(2) (socket(7), SO_SNDTIMEO) */
static int connected(int family, const void *address, socklen_t len, unsigned timeout_ms)
{
	const int wait = timeout_ms == NO_WAIT ? SOCK_NONBLOCK : 0;
	CLEANUP(cleanup_close) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | wait, 0);
	struct timeval limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
		return -errno;
	/* commands that are sent before the answer to the last has come do not wait for it */
	if (family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (connect(fd, address, len) < 0 && (timeout_ms != NO_WAIT || errno != EINPROGRESS))
		return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	return steal_fd(&fd);
}

static int open_path(const char *path, unsigned timeout_ms, unsigned *tried)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if ((*tried)++)
		return -ECONNREFUSED;
	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	return connected(AF_UNIX, &a, sizeof(a), timeout_ms);
}

/* Passes over the first *@tried addresses. */
static int open_next(const struct addrinfo *list, unsigned timeout_ms, unsigned *tried)
{
	unsigned n = 0;
	int fd = -ECONNREFUSED;

	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		if (n++ >= *tried)
			fd = connected(a->ai_family, a->ai_addr, a->ai_addrlen, timeout_ms);
	*tried = n;
	return fd;
}

/* Sets *@words for an error that is no errno. */
static int open_host(const char *server, unsigned timeout_ms, unsigned *tried, const char **words)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	char host[NI_MAXHOST], service[6];
	struct addrinfo *list;
	uint16_t port = 0;
	int fd, e;

	if (!host_split(server, strlen(server), host, sizeof(host), &port) || !port)
		return *words = "HOST:PORT or the path of a socket is needed", -EINVAL;
	snprintf(service, sizeof(service), "%u", port);
	e = getaddrinfo(host, service, &hints, &list);
	if (e)
		return *words = gai_strerror(e), -ENOENT;
	fd = open_next(list, timeout_ms, tried);
	freeaddrinfo(list);
	return fd;
}

static int open_any(
	struct talk *t, const char *server, unsigned timeout_ms, unsigned *tried, char *why, size_t size)
{
	const char *words = NULL;

	t->len = 0;
	t->fd = *server == '/' ? open_path(server, timeout_ms, tried)
			       : open_host(server, timeout_ms, tried, &words);
	if (t->fd < 0)
		return refuse(why, size, t->fd, server, words ? words : strerror(-t->fd));
	return 0;
}

int talk_open(struct talk *t, const char *server, unsigned timeout_ms, char *why, size_t size)
{
	return open_any(t, server, timeout_ms, &(unsigned){0}, why, size);
}

int talk_begin(struct talk *t, const char *server, unsigned *tried, char *why, size_t size)
{
	return open_any(t, server, NO_WAIT, tried, why, size);
}

void talk_close(struct talk *t)
{
	close(t->fd);
}

static int failed(void)
{
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

static int send_all(struct talk *t, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(t->fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive(struct talk *t)
{
	ssize_t n;

	if (t->len == sizeof(t->buf))
		return -EPROTO;
	do
		n = recv(t->fd, t->buf + t->len, sizeof(t->buf) - t->len, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? failed() : -EPIPE;
	t->len += (size_t)n;
	return 0;
}

int talk_line(struct talk *t, char *line, size_t size)
{
	char *end;
	size_t len;
	int e;

	while (!(end = memchr(t->buf, '\n', t->len))) {
		e = receive(t);
		if (e < 0)
			return e;
	}
	len = (size_t)(end - t->buf);
	snprintf(line, size, "%.*s", (int)(len && end[-1] == '\r' ? len - 1 : len), t->buf);
	t->len -= len + 1;
	memmove(t->buf, end + 1, t->len);
	return 0;
}

__attribute__((format(printf, 2, 0))) static int send_command(struct talk *t, const char *command, va_list ap)
{
	CLEANUP(cleanup_free) char *text = NULL, *whole = NULL;

	if (vasprintf(&text, command, ap) < 0)
		return text = NULL, -ENOMEM;
	/* in one segment: the second of two would wait for an acknowledgement of the first */
	if (asprintf(&whole, "%s\r\n", text) < 0)
		return whole = NULL, -ENOMEM;
	return send_all(t, whole, strlen(whole));
}

int talk_send(struct talk *t, const char *command, ...)
{
	va_list ap;
	int e;

	va_start(ap, command);
	e = send_command(t, command, ap);
	va_end(ap);
	return e;
}

int talk_ask(struct talk *t, char *line, size_t size, const char *command, ...)
{
	va_list ap;
	int e;

	va_start(ap, command);
	e = send_command(t, command, ap);
	va_end(ap);
	return e < 0 ? e : talk_line(t, line, size);
}

int talk_stats_answer(struct talk *t, struct talk_stat *stats, unsigned n)
{
	char line[512], name[128], value[64];
	int e;

	for (unsigned i = 0; i < n; i++)
		*stats[i].value = 0;
	while ((e = talk_line(t, line, sizeof(line))) == 0 && strcmp(line, "END") != 0) {
		if (strncmp(line, "STAT ", 5) != 0)
			return -EPROTO;
		if (sscanf(line, "STAT %127s %63s", name, value) != 2)
			continue;
		for (unsigned i = 0; i < n; i++)
			if (strcmp(stats[i].name, name) == 0)
				strcpy(stats[i].value, value);
	}
	return e;
}

int talk_stats(struct talk *t, const char *what, struct talk_stat *stats, unsigned n)
{
	int e = talk_send(t, "stats%s%s", *what ? " " : "", what);

	return e < 0 ? e : talk_stats_answer(t, stats, n);
}
