/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/listener.h"

#include "reddnd/control/commands.h"
#include "reddnd/server/operator.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/host.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

enum {
	FRESH_US = 200000, /* how old a text may be that is sent once more */
	SPARE = 16,        /* connections that may be accepted before those that they replace are closed */
	PAUSE_NS = 100000000,
};

enum { OPENMETRICS, PROMETHEUS, FORMATS };

static const char *const types[FORMATS] = {
	[OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
};

struct waiter {
	struct MHD_Connection *connection; /* suspended */
	SLIST_ENTRY(waiter) link;
};

struct peer {
	int fd; /* -1: it is not in the list any more */
	TAILQ_ENTRY(peer) link;
};

/* The HTTP thread sends what the event loop has written, and asks for a new text when that is too old */
struct listener {
	struct server *server;
	struct MHD_Daemon *http;
	sd_event_source *io;
	int asked;                /* eventfd: somebody waits */
	TAILQ_HEAD(, peer) peers; /* the oldest first; of the HTTP thread alone, as the next */
	unsigned npeers;
	pthread_mutex_t lock;                  /* over the rest */
	struct MHD_Response *metrics[FORMATS]; /* NULL: there was no memory for it */
	uint64_t written_us;                   /* 0: not yet */
	SLIST_HEAD(, waiter) waiters;
	bool closing; /* nobody waits any more */
};

DEFINE_CLEANUP(struct stats *, stats_free)

static struct MHD_Response *response(const char *type, char *text, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), text, mode);

	if (r && MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) != MHD_YES) {
		MHD_destroy_response(r);
		r = NULL;
	}
	return r;
}

/* With the methods of the page, unless there is no page */
static enum MHD_Result tell_usage(struct MHD_Connection *c, unsigned status)
{
	static char words[] = "GET /metrics\n";
	struct MHD_Response *r = response("text/plain; charset=utf-8", words, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result ok = MHD_NO;

	if (r && (status == MHD_HTTP_NOT_FOUND ||
			 MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, OPTIONS") == MHD_YES))
		ok = MHD_queue_response(c, status, r);
	if (r)
		MHD_destroy_response(r);
	return ok;
}

/* Who knows OpenMetrics names it. Most others take anything */
static unsigned preferred(struct MHD_Connection *c)
{
	const char *accept = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

	return accept && strcasestr(accept, "text/plain") && !strcasestr(accept, "openmetrics-text")
		       ? PROMETHEUS
		       : OPENMETRICS;
}

static void peer_comes(struct listener *l, struct peer *p, struct MHD_Connection *c)
{
	struct peer *oldest;

	p->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	TAILQ_INSERT_TAIL(&l->peers, p, link);
	if (++l->npeers <= LISTENER_PEERS_MAX)
		return;
	oldest = TAILQ_FIRST(&l->peers);
	TAILQ_REMOVE(&l->peers, oldest, link);
	l->npeers--;
	shutdown(oldest->fd, SHUT_RDWR); /* and the HTTP thread closes it */
	oldest->fd = -1;
}

static void peer_leaves(struct listener *l, struct peer *p)
{
	if (p->fd >= 0) {
		TAILQ_REMOVE(&l->peers, p, link);
		l->npeers--;
	}
	free(p);
}

/* On the HTTP thread, before the descriptor is closed. Without memory a peer only is not replaced */
static void notify(void *arg, struct MHD_Connection *c, void **peer, enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*peer = malloc(sizeof(struct peer));
	if (!*peer)
		return;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		peer_comes(arg, *peer, c);
	else
		peer_leaves(arg, *peer);
}

/* Until the event loop has written a new text */
static enum MHD_Result wait_for_text(struct listener *l, struct MHD_Connection *c)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return MHD_NO;
	w->connection = c;
	MHD_suspend_connection(c);
	SLIST_INSERT_HEAD(&l->waiters, w, link);
	eventfd_write(l->asked, 1); /* fails only if it has been asked 2^64 times */
	return MHD_YES;
}

/* On the HTTP thread. The first call is for the headers; others bring a body, which is ignored; when a
 * connection is resumed, the last one is repeated */
static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *body, size_t *body_size, void **seen)
{
	struct listener *l = arg;
	enum MHD_Result ok;
	unsigned format;

	(void)version;
	(void)body;
	if (!*seen) {
		*seen = l;
		return MHD_YES;
	}
	if (*body_size) {
		*body_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") != 0)
		return tell_usage(c, MHD_HTTP_NOT_FOUND);
	if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0)
		return tell_usage(c, MHD_HTTP_OK);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return tell_usage(c, MHD_HTTP_METHOD_NOT_ALLOWED);
	format = preferred(c);
	pthread_mutex_lock(&l->lock);
	if (!l->closing && clock_us() - l->written_us >= FRESH_US)
		ok = wait_for_text(l, c);
	else
		ok = l->metrics[format] ? MHD_queue_response(c, MHD_HTTP_OK, l->metrics[format]) : MHD_NO;
	pthread_mutex_unlock(&l->lock);
	return ok;
}

/* With the lock held */
static void resume_all(struct listener *l)
{
	struct waiter *w;

	while ((w = SLIST_FIRST(&l->waiters))) {
		SLIST_REMOVE_HEAD(&l->waiters, link);
		MHD_resume_connection(w->connection);
		free(w);
	}
}

static void drop_metrics(struct listener *l)
{
	for (unsigned i = 0; i < FORMATS; i++)
		if (l->metrics[i])
			MHD_destroy_response(l->metrics[i]);
}

/* On the event loop: somebody waits for a text. Without memory for it they are disconnected */
static int write_text(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	CLEANUP(stats_freep) struct stats *stats = NULL;
	struct listener *l = arg;
	struct MHD_Response *r[FORMATS] = {NULL};
	char *text[FORMATS] = {NULL};
	eventfd_t n;

	(void)source;
	(void)revents;
	if (eventfd_read(fd, &n) < 0)
		return 0;
	stats = operator_snapshot(l->server);
	text[OPENMETRICS] = stats ? metrics_text(stats) : NULL;
	text[PROMETHEUS] = text[OPENMETRICS] ? metrics_prometheus(text[OPENMETRICS]) : NULL;
	for (unsigned i = 0; i < FORMATS; i++)
		if (text[i])
			r[i] = response(types[i], text[i], MHD_RESPMEM_MUST_FREE);
	pthread_mutex_lock(&l->lock);
	drop_metrics(l);
	memcpy(l->metrics, r, sizeof(r));
	l->written_us = clock_us();
	resume_all(l);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* On the HTTP thread, with no lock held. Where no descriptor is left, libmicrohttpd tries again at once for
 * as long as anybody waits (MHD_accept_connection()), and reports it by these words alone. */
static void pause_accepting(void *arg, const char *format, va_list ap)
{
	static const char words[] = "Error accepting connection";
	static const struct timespec pause = {.tv_nsec = PAUSE_NS};

	(void)arg;
	(void)ap;
	if (strncmp(format, words, strlen(words)) == 0)
		nanosleep(&pause, NULL);
}

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

static int start(struct listener *l, const struct catalog_listen *at)
{
	CLEANUP(freeaddrinfop) struct addrinfo *ai = NULL;

	if (host_look_up(at->address, at->port, AI_PASSIVE | AI_NUMERICHOST, &ai))
		return -EADDRNOTAVAIL;
	errno = EADDRNOTAVAIL;
	l->http =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
					 MHD_USE_ERROR_LOG | (ai->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0),
			at->port, NULL, NULL, answer, l, MHD_OPTION_EXTERNAL_LOGGER, pause_accepting, NULL,
			MHD_OPTION_SOCK_ADDR, ai->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
			(unsigned)LISTENER_PEERS_MAX + SPARE, MHD_OPTION_CONNECTION_TIMEOUT,
			(unsigned)LISTENER_IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, notify, l, MHD_OPTION_END);
	return l->http ? 0 : -errno;
}

DEFINE_CLEANUP(struct listener *, listener_free)

int listener_new(
	struct listener **out, const struct catalog_listen *at, struct server *server, sd_event *event)
{
	CLEANUP(listener_freep) struct listener *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->server = server;
	TAILQ_INIT(&l->peers);
	pthread_mutex_init(&l->lock, NULL);
	l->asked = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = l->asked < 0 ? -errno : sd_event_add_io(event, &l->io, l->asked, EPOLLIN, write_text, l);
	if (r >= 0)
		r = start(l, at);
	if (r < 0)
		return log_errno(r, "metrics cannot be served at %s port %u", at->address, at->port);
	log_info("metrics at http://%s%s%s:%u/metrics", strchr(at->address, ':') ? "[" : "", at->address,
		strchr(at->address, ':') ? "]" : "", at->port);
	*out = steal_ptr(&l);
	return 0;
}

void listener_free(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	l->closing = true;
	resume_all(l);
	pthread_mutex_unlock(&l->lock);
	if (l->http)
		MHD_stop_daemon(l->http);
	sd_event_source_disable_unref(l->io);
	if (l->asked >= 0)
		close(l->asked);
	drop_metrics(l);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
