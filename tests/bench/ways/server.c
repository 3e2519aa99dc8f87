/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * baseline-server - offers a table to the clients of baseline-client: "baseline-server [--events] [--write]
 * [--shared] TABLE ADDRESS PORT". Each client chooses when it connects: READs of the server's memory, or
 * answers by this CPU, which polls for requests, or with --events sleeps until one arrives. --write: allows
 * requests that change the table; --shared: clients may do that with WRITEs and atomics; nobody else may
 * write. --list NODES: a list instead; the file in place of TABLE has its values (source.h).
 * --costs: prints at the end the median CPU time of a request, from the poll that finds it to the doorbell
 * for its answer: "a request takes N ns". Prints "listening" when clients can connect; ends on SIGTERM or
 * SIGINT.
 */
#include "tests/bench/ways/link.h"
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/serve.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 4096, EVENTS_EVERY = 1024, YIELD_EVERY = 16 }; /* polls */
enum { COSTS = 65536 };                                           /* number kept */

struct server {
	bool events;
	struct source *source;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	/* made at the first connection, which determines the device */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct serve *serve;
	unsigned asking; /* connections of two-sided clients */
	uint32_t *costs; /* ns of each request; NULL: without --costs */
	uint64_t ncosts;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int use_device(struct server *s, struct ibv_context *ctx)
{
	if (s->pd)
		return s->pd->context == ctx ? 0 : -EXDEV;
	s->pd = ibv_alloc_pd(ctx);
	s->cq = s->pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	return s->cq ? serve_new(&s->serve, s->pd, s->source, s->events) : -errno;
}

/* The context of an id is its struct serve_conn, if it has one. */
static int prepare(struct server *s, struct rdma_cm_id *id, uint32_t way, uint32_t depth, uint32_t keys)
{
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct serve_conn *conn;
	int r = use_device(s, id->verbs);

	if (r == 0)
		r = s->source->serve(s->source, s->pd, way);
	if (r == 0 && way == LINK_REQUESTS) {
		if (depth < 1 || depth > DEPTH_MAX || keys < 1 || keys > REQUEST_KEYS)
			return -ERANGE;
		r = serve_add(s->serve, id, depth, keys, &conn);
		if (r == 0) {
			id->context = conn;
			s->asking++;
		}
		return r;
	}
	attr.send_cq = attr.recv_cq = s->cq;
	return r < 0 ? r : rdma_create_qp(id, s->pd, &attr) ? -errno : 0;
}

static void leave(struct server *s, struct rdma_cm_id *id)
{
	if (id->context) {
		serve_remove(id->context);
		s->asking--;
	} else if (id->qp) {
		rdma_destroy_qp(id);
	}
	rdma_destroy_id(id);
}

static void offer_range(struct link_range *to, const struct source_file *f)
{
	if (f->mr)
		*to = (struct link_range){htobe64((uintptr_t)f->mem), htobe64(f->size), htobe32(f->mr->rkey)};
}

static int welcome(
	struct server *s, struct rdma_cm_id *id, const struct rdma_conn_param *asked, struct link_wish wish)
{
	struct link_offer offer = {0};
	struct rdma_conn_param param = {
		.private_data = &offer,
		.private_data_len = sizeof(offer),
		.responder_resources = asked->responder_resources,
		.initiator_depth = asked->initiator_depth,
		.rnr_retry_count = 7,
	};
	int r = prepare(s, id, be32toh(wish.way), be32toh(wish.depth), be32toh(wish.keys));

	if (r < 0)
		return r;
	offer_range(&offer.file, &s->source->file);
	offer_range(&offer.array, &s->source->array);
	if (be32toh(wish.way) == LINK_TABLE && wish.keys)
		r = s->source->give ? s->source->give(s->source, be32toh(wish.keys), &offer.array) : -EROFS;
	if (r < 0)
		return r;
	offer.request_max = id->context ? htobe32(serve_request_max(id->context)) : 0;
	offer.reply_max = htobe32(s->source->reply_max);
	return rdma_accept(id, &param) ? -errno : 0;
}

/* One event of the connection manager. */
static void handle(struct server *s)
{
	struct rdma_cm_event *ev;
	struct rdma_conn_param asked;
	struct rdma_cm_id *id;
	struct link_wish wish = {0};
	enum rdma_cm_event_type type;
	int r;

	if (rdma_get_cm_event(s->channel, &ev))
		return;
	id = ev->id;
	type = ev->event;
	asked = ev->param.conn;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && asked.private_data_len >= sizeof(wish))
		memcpy(&wish, asked.private_data, sizeof(wish));
	rdma_ack_cm_event(ev);
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id->context = NULL;
		r = welcome(s, id, &asked, wish);
		if (r < 0) {
			fprintf(stderr, "a client is refused: %s\n", strerror(-r));
			rdma_reject(id, NULL, 0);
			leave(s, id);
		}
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		leave(s, id);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		leave(s, id);
		break;
	default:
		break;
	}
}

static bool readable(int fd, int other, int timeout_ms)
{
	struct pollfd pfd[2] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	return poll(pfd, other < 0 ? 1 : 2, timeout_ms) > 0 && pfd[0].revents;
}

static int answer_all(struct server *s)
{
	uint64_t before = s->costs ? clock_ns() : 0;
	int n = serve_poll(s->serve);

	if (s->costs && n > 0)
		s->costs[s->ncosts++ % COSTS] = (uint32_t)((clock_ns() - before) / (unsigned)n);
	return n;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print_costs(struct server *s)
{
	size_t n = s->ncosts < COSTS ? s->ncosts : COSTS;

	if (!n)
		return;
	qsort(s->costs, n, sizeof(s->costs[0]), ascending);
	printf("a request takes %u ns\n", s->costs[n / 2]);
}

static void run(struct server *s)
{
	int fd = s->channel->fd;

	for (uint64_t turn = 1; !stop; turn++) {
		if (!s->asking) {
			if (readable(fd, -1, -1))
				handle(s);
			continue;
		}
		/* An endless stream of requests does not delay new clients */
		if (turn % EVENTS_EVERY == 0 && readable(fd, -1, 0))
			handle(s);
		if (answer_all(s))
			continue;
		if (s->events) {
			if (serve_arm(s->serve) < 0 || answer_all(s))
				continue;
			if (readable(fd, serve_fd(s->serve), -1))
				handle(s);
		} else if (turn % YIELD_EVERY == 0) {
			sched_yield();
		}
	}
}

static int listen_on(struct server *s, const char *address, const char *port)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *ai;
	int r = rdma_getaddrinfo(address, port, &hints, &ai);

	if (r) {
		fprintf(stderr, "%s port %s: %s\n", address, port, r > 0 ? gai_strerror(r) : strerror(errno));
		return -EINVAL;
	}
	s->channel = rdma_create_event_channel();
	r = !s->channel || rdma_create_id(s->channel, &s->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(s->listener, ai->ai_src_addr) || rdma_listen(s->listener, 64);
	if (r)
		fprintf(stderr, "cannot listen on %s port %s: %m\n", address, port);
	rdma_freeaddrinfo(ai);
	return r ? -EIO : 0;
}

static void end(struct server *s)
{
	if (s->listener)
		rdma_destroy_id(s->listener);
	if (s->channel)
		rdma_destroy_event_channel(s->channel);
	serve_free(s->serve);
	if (s->source)
		s->source->free(s->source);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	free(s->costs);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"events", no_argument, NULL, 'e'},
		{"write", no_argument, NULL, 'w'}, {"shared", no_argument, NULL, 's'},
		{"list", required_argument, NULL, 'l'}, {"costs", no_argument, NULL, 'c'}, {0}};
	struct sigaction sa = {.sa_handler = on_signal};
	struct server s = {0};
	const char *list = NULL;
	enum source_access access = SOURCE_READ;
	int o;

	while ((o = getopt_long(argc, argv, "ewsl:c", options, NULL)) != -1) {
		if (o == '?')
			return 2;
		s.events |= o == 'e';
		if (o == 'w' || o == 's')
			access = o == 'w' ? SOURCE_WRITE : SOURCE_SHARED;
		if (o == 'l')
			list = optarg;
		if (o == 'c' && !s.costs && !(s.costs = calloc(COSTS, sizeof(s.costs[0]))))
			return 1;
	}
	argv += optind;
	if (argc - optind != 3) {
		fprintf(stderr, "usage: baseline-server [--events] [--write] [--shared] [--list NODES] "
				"[--costs] TABLE ADDRESS PORT\n");
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	if ((list ? source_list(&s.source, list, argv[0]) : source_table(&s.source, argv[0], access)) < 0 ||
		listen_on(&s, argv[1], argv[2]) < 0)
		return 1;
	puts("listening");
	fflush(stdout);
	run(&s);
	print_costs(&s);
	end(&s);
	return 0;
}
