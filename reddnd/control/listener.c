/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/listener.h"

#include "reddnd/control/metrics.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>

struct listener {
	struct server *server;
	struct MHD_Daemon *http;
	sd_event_source *io, *timer;
};

DEFINE_CLEANUP(struct stats *, stats_free)

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type, const char *text,
	enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, mode);
	enum MHD_Result ok = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES)
		ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *body, size_t *body_size, void **seen)
{
	static const char plain[] = "text/plain; charset=utf-8";
	CLEANUP(stats_freep) struct stats *stats = NULL;
	struct listener *l = arg;
	char *text;

	(void)version;
	(void)body;
	/* The first call is for the headers; later ones bring a body, which is ignored */
	if (!*seen) {
		*seen = l;
		return MHD_YES;
	}
	if (*body_size) {
		*body_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
		return reply(c, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "GET /metrics\n", MHD_RESPMEM_PERSISTENT);
	if (strcmp(url, "/metrics") != 0)
		return reply(c, MHD_HTTP_NOT_FOUND, plain, "GET /metrics\n", MHD_RESPMEM_PERSISTENT);
	stats = server_snapshot(l->server);
	text = stats ? metrics_text(stats) : NULL;
	return text ? reply(c, MHD_HTTP_OK, "application/openmetrics-text; version=1.0.0; charset=utf-8",
			      text, MHD_RESPMEM_MUST_FREE)
		    : MHD_NO;
}

/* MHD_run() finds silent clients: it must run as long as there are clients */
static int run(struct listener *l)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(l->http);
	if (MHD_get_timeout(l->http, &ms) != MHD_YES)
		return sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (sd_event_source_set_time_relative(l->timer, ms * 1000) < 0)
		return -EINVAL;
	return sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	(void)source;
	(void)fd;
	(void)revents;
	return run(arg);
}

static int due(sd_event_source *source, uint64_t usec, void *arg)
{
	(void)source;
	(void)usec;
	return run(arg);
}

static int start(struct listener *l, const struct catalog_listen *at)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(at->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(at->port)};
	bool is_v6 = inet_pton(AF_INET, at->address, &v4.sin_addr) != 1;
	const struct sockaddr *addr = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;

	if (is_v6 && inet_pton(AF_INET6, at->address, &v6.sin6_addr) != 1)
		return -EINVAL;
	errno = EADDRNOTAVAIL;
	l->http = MHD_start_daemon(MHD_USE_EPOLL | (is_v6 ? MHD_USE_IPv6 : 0), at->port, NULL, NULL, answer,
		l, MHD_OPTION_SOCK_ADDR, addr, MHD_OPTION_CONNECTION_LIMIT, (unsigned)LISTENER_PEERS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LISTENER_IDLE_S, MHD_OPTION_END);
	return l->http ? 0 : -errno;
}

DEFINE_CLEANUP(struct listener *, listener_free)

int listener_new(
	struct listener **out, const struct catalog_listen *at, struct server *server, sd_event *event)
{
	CLEANUP(listener_freep) struct listener *l = calloc(1, sizeof(*l));
	const union MHD_DaemonInfo *info;
	int r;

	if (!l)
		return -ENOMEM;
	l->server = server;
	r = start(l, at);
	if (r < 0)
		return log_errno(r, "metrics cannot be served at %s port %u", at->address, at->port);
	info = MHD_get_daemon_info(l->http, MHD_DAEMON_INFO_EPOLL_FD);
	r = info ? sd_event_add_io(event, &l->io, info->epoll_fd, EPOLLIN, ready, l) : -ENOTSUP;
	if (r >= 0)
		r = sd_event_add_time_relative(event, &l->timer, CLOCK_MONOTONIC, 0, 0, due, l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (r < 0)
		return log_errno(r, "metrics cannot be served");
	log_info("metrics at http://%s%s%s:%u/metrics", strchr(at->address, ':') ? "[" : "", at->address,
		strchr(at->address, ':') ? "]" : "", at->port);
	*out = steal_ptr(&l);
	return 0;
}

void listener_free(struct listener *l)
{
	sd_event_source_disable_unref(l->timer);
	sd_event_source_disable_unref(l->io);
	if (l->http)
		MHD_stop_daemon(l->http);
	free(l);
}
