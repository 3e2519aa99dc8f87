/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/talk.h"

#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/host.h"
#include "util/lookup.h"
#include "util/text.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* TAKE_MOST: of an endless answer, the next look takes more */
enum { UNIX_PAUSE_MS = 10, TAKE_MOST = 16 };

static int refuse(char *why, size_t size, int error, const char *server, const char *words)
{
	snprintf(why, size, "%s: %s", server, words);
	return error;
}

/* ---- waiting ---------------------------------------------------------------------------- */

static void begin(struct talk *t)
{
	t->until_ms = clock_ms() + t->timeout_ms;
	t->room = TALK_MOST;
}

/* For @events of @fd; -1: only for @most_ms. 0: they are there, or it is time to look again */
static int wait_for(const struct talk *t, int fd, short events, uint64_t most_ms)
{
	struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = t->stop ? t->stop : -1, .events = POLLIN}};
	uint64_t now_ms = clock_ms(), left_ms = t->until_ms - now_ms;

	if (now_ms >= t->until_ms)
		return -ETIMEDOUT;
	if (poll(p, COUNT(p), (int)(left_ms < most_ms ? left_ms : most_ms)) < 0 && errno != EINTR)
		return -errno;
	return p[1].revents ? -ECANCELED : 0;
}

/* ---- the connection --------------------------------------------------------------------- */

/* A connection under way, until it is made */
static int complete(const struct talk *t)
{
	socklen_t len = sizeof(int);
	int e, error = EINPROGRESS;
	struct pollfd p = {.fd = t->fd, .events = POLLOUT};

	do {
		e = wait_for(t, t->fd, POLLOUT, t->timeout_ms);
		if (e < 0)
			return e;
	} while (poll(&p, 1, 0) <= 0);
	return getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

static int make(const struct talk *t, const void *address, socklen_t len)
{
	int e;

	while (connect(t->fd, address, len) < 0) {
		if (errno == EINPROGRESS)
			return complete(t);
		/* the queue of a Unix socket is full (connect(2)) */
		if (errno != EAGAIN)
			return -errno;
		e = wait_for(t, -1, 0, UNIX_PAUSE_MS);
		if (e < 0)
			return e;
	}
	return 0;
}

static int open_address(struct talk *t, int family, const void *address, socklen_t len)
{
	int e;

	t->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd < 0)
		return -errno;
	/* commands that are sent before the answer to the last has come do not wait for it */
	if (family != AF_UNIX)
		setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	e = make(t, address, len);
	if (e < 0)
		close(t->fd);
	return e;
}

static int open_path(struct talk *t, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	return open_address(t, AF_UNIX, &a, sizeof(a));
}

static void forget_addresses(struct talk *t)
{
	if (t->addresses)
		freeaddrinfo(t->addresses);
	t->addresses = NULL;
}

static int wait_for_lookup(struct talk *t)
{
	uint64_t until_ms = clock_ms() + t->timeout_ms / (t->addresses ? 2 : 1);
	int e = 0;

	while (e == 0 && !lookup_has_ended(t->lookup) && clock_ms() < until_ms)
		e = wait_for(t, lookup_fd(t->lookup), POLLIN, until_ms - clock_ms());
	return e == 0 && !lookup_has_ended(t->lookup) ? -ETIMEDOUT : e;
}

/* Sets *@words for an error that is no errno. */
static int end_lookup(struct talk *t, const char **words)
{
	struct addrinfo *list;
	int e = lookup_end(t->lookup, &list);

	t->lookup = NULL;
	if (e) {
		*words = gai_strerror(e);
		return -ENOENT;
	}
	forget_addresses(t);
	t->addresses = list;
	return 0;
}

static int look_up(struct talk *t, const char *host, uint16_t port, const char **words)
{
	bool was_late = t->lookup;
	int e = was_late ? 0 : lookup_begin(&t->lookup, host, port);

	/* each connection waits for it, once there are addresses only the first */
	if (e == 0 && !(was_late && t->addresses))
		e = wait_for_lookup(t);
	if (e == -ETIMEDOUT)
		*words = "its name is not looked up in time";
	return t->lookup && lookup_has_ended(t->lookup) ? end_lookup(t, words) : e;
}

static int open_host(struct talk *t, const char *server, const char **words)
{
	char host[NI_MAXHOST];
	uint16_t port = 0;
	int e;

	if (!host_split(server, strlen(server), host, sizeof(host), &port) || !port)
		return *words = "HOST:PORT or the path of a socket is needed", -EINVAL;
	e = look_up(t, host, port, words);
	if (!t->addresses)
		return e;
	*words = NULL;
	e = -ECONNREFUSED;
	for (const struct addrinfo *a = t->addresses; a && e < 0 && e != -ETIMEDOUT && e != -ECANCELED;
		a = a->ai_next)
		e = open_address(t, a->ai_family, a->ai_addr, a->ai_addrlen);
	return e;
}

int talk_open(struct talk *t, const char *server, unsigned timeout_ms, char *why, size_t size)
{
	const char *words = NULL;
	int e;

	t->len = 0;
	t->timeout_ms = timeout_ms;
	begin(t);
	e = *server == '/' ? open_path(t, server) : open_host(t, server, &words);
	return e < 0 ? refuse(why, size, e, server, words ? words : strerror(-e)) : 0;
}

void talk_close(struct talk *t)
{
	close(t->fd);
}

void talk_deinit(struct talk *t)
{
	forget_addresses(t);
	lookup_abandon(t->lookup);
	t->lookup = NULL;
}

bool talk_has_ended(struct talk *t)
{
	ssize_t n = 1;

	for (unsigned i = 0; i < TAKE_MOST && n > 0; i++)
		n = recv(t->fd, t->buf, sizeof(t->buf), MSG_DONTWAIT);
	t->len = 0;
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
	       (t->lookup && lookup_has_ended(t->lookup));
}

/* ---- a dialogue ------------------------------------------------------------------------- */

static int send_all(struct talk *t, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(t->fd, bytes, len, MSG_NOSIGNAL);
		int e = n < 0 && errno == EAGAIN ? wait_for(t, t->fd, POLLOUT, t->timeout_ms) : 0;

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (e < 0)
			return e;
		bytes += n < 0 ? 0 : n;
		len -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int receive(struct talk *t)
{
	size_t most = sizeof(t->buf) - t->len;
	ssize_t n;
	int e;

	if (!most || !t->room)
		return -EPROTO;
	while ((n = recv(t->fd, t->buf + t->len, most < t->room ? most : t->room, 0)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		e = wait_for(t, t->fd, POLLIN, t->timeout_ms);
		if (e < 0)
			return e;
	}
	t->len += (size_t)n;
	t->room -= (size_t)n;
	return n ? 0 : -EPIPE;
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
	text_clean(line);
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
	begin(t);
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
