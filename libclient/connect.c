/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/client-impl.h"
#include "libclient/public.h"
#include "protocol/token.h"
#include "protocol/wire.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* The first guess, when the caller leaves slot_size open: a server that needs more says how much. */
enum {
	SLOT_GUESS = 4096,
	DEPTH_DEFAULT = 16,
	TIMEOUT_DEFAULT = 5000,
	RETRY_DEFAULT = 1000,
	SPIN_DEFAULT = 20
};

/* One attempt to connect, and where its failure is told. */
struct attempt {
	struct reddn *c;
	const struct reddn_options *opt;
	struct token_key key; /* len 0: none */
	uint64_t deadline;    /* ms */
	uint32_t need;        /* the slot size that the server asked for */
	char *err;
	size_t errlen;
};

#define FAIL(a, code, ...) reddn_fail(code, (a)->err, (a)->errlen, __VA_ARGS__)

static void connectionp(struct reddn **c)
{
	reddn_close(*c);
}

static void addrinfop(struct addrinfo **ai)
{
	if (*ai)
		freeaddrinfo(*ai);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int left_ms(const struct attempt *a)
{
	uint64_t now = now_ms();

	return now < a->deadline ? (int)(a->deadline - now) : 0;
}

static int unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

PUBLIC void reddn_close(struct reddn *c)
{
	if (!c)
		return;
	if (c->id) {
		if (c->id->qp) {
			rdma_disconnect(c->id);
			rdma_destroy_qp(c->id);
		}
		if (c->mr)
			ibv_dereg_mr(c->mr);
		if (c->cq) {
			struct ibv_cq *cq;
			void *context;

			while (ibv_get_cq_event(c->channel, &cq, &context) == 0)
				ibv_ack_cq_events(cq, 1);
			ibv_destroy_cq(c->cq);
		}
		if (c->channel)
			ibv_destroy_comp_channel(c->channel);
		if (c->pd)
			ibv_dealloc_pd(c->pd);
		rdma_destroy_id(c->id);
	}
	if (c->events)
		rdma_destroy_event_channel(c->events);
	if (c->epoll >= 0)
		close(c->epoll);
	reddn_requests_deinit(c);
	free(c);
}

void reddn_check_events(struct reddn *c)
{
	struct pollfd p = {.fd = c->events->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	while (poll(&p, 1, 0) > 0 && rdma_get_cm_event(c->events, &ev) == 0) {
		enum rdma_cm_event_type type = ev->event;

		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_DISCONNECTED)
			c->hangup = true;
		else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			reddn_break(c, -ENODEV, "the RDMA device was removed");
	}
}

/* What a refusal means to the caller. */
static int refused(struct attempt *a, const struct rdma_conn_param *p)
{
	static const int codes[] = {[REDDN_REJ_VERSION] = -EPROTONOSUPPORT,
		[REDDN_REJ_MALFORMED] = -EPROTO,
		[REDDN_REJ_OFFLOAD] = -ENOENT,
		[REDDN_REJ_DEPTH] = -ERANGE,
		[REDDN_REJ_SLOT] = -EMSGSIZE,
		[REDDN_REJ_RESOURCES] = -EBUSY,
		[REDDN_REJ_INTERNAL] = -EREMOTEIO,
		[REDDN_REJ_SHUTDOWN] = -ESHUTDOWN,
		[REDDN_REJ_ACCESS] = -EACCES,
		[REDDN_REJ_QUOTA] = -EDQUOT};
	struct reddn_wire_rej rej;

	if (p->private_data && p->private_data_len >= sizeof(rej)) {
		memcpy(&rej, p->private_data, sizeof(rej));
		rej.text[sizeof(rej.text) - 1] = '\0';
		if (be32toh(rej.magic) == REDDN_WIRE_MAGIC) {
			int code = rej.reason && rej.reason < sizeof(codes) / sizeof(codes[0])
					   ? codes[rej.reason]
					   : -EPROTO;

			if (rej.reason == REDDN_REJ_SLOT)
				a->need = be32toh(rej.need);
			/* It goes to terminals. */
			for (char *t = rej.text; *t; t++)
				*t = (unsigned char)*t < ' ' || *t == 0x7f ? '?' : *t;
			return FAIL(a, code, "refused by the server: %s",
				*rej.text ? rej.text : "no reason given");
		}
	}
	return FAIL(a, -ECONNREFUSED, "%s port %u: connection refused", a->opt->host, a->opt->port);
}

static int take_reply(struct attempt *a, const struct rdma_conn_param *p)
{
	struct reddn *c = a->c;
	struct reddn_wire_rep rep;
	const char *wrong;

	if (!p->private_data || p->private_data_len < sizeof(rep))
		return FAIL(a, -EPROTO, "the server is no reddnd: it accepted with %u bytes, not %zu",
			p->private_data_len, sizeof(rep));
	memcpy(&rep, p->private_data, sizeof(rep));
	if (be32toh(rep.magic) != REDDN_WIRE_MAGIC)
		return FAIL(a, -EPROTO, "the server is no reddnd: wrong magic 0x%08x", be32toh(rep.magic));
	if (rep.version != REDDN_WIRE_VERSION)
		return FAIL(a, -EPROTONOSUPPORT, "the server speaks version %u, this library %u", rep.version,
			REDDN_WIRE_VERSION);
	c->info.arg_len = be32toh(rep.arg_len);
	c->info.reply_max = be32toh(rep.reply_max);
	c->info.session = be64toh(rep.session);
	if (be16toh(rep.depth) != c->info.depth)
		return FAIL(a, -EPROTO, "protocol violated: depth %u granted, %u asked", be16toh(rep.depth),
			c->info.depth);
	if (c->info.arg_len > REDDN_ARG_MAX)
		return FAIL(a, -EPROTO, "protocol violated: requests of %u bytes, up to %u are possible",
			c->info.arg_len, REDDN_ARG_MAX);
	if (c->info.reply_max > c->info.slot_size)
		return FAIL(a, -EPROTO, "protocol violated: replies of %u bytes into slots of %u",
			c->info.reply_max, c->info.slot_size);
	wrong = reddn_form_take(&c->form, &rep, c->info.arg_len);
	if (wrong)
		return FAIL(a, -EPROTO, "protocol violated: %s", wrong);
	c->info.nargs = c->form.nargs;
	switch (rep.shape) {
	case REDDN_SHAPE_OPAQUE:
		c->info.shape = REDDN_OPAQUE;
		c->key_room = REDDN_ARG_MAX;
		return 0;
	case REDDN_SHAPE_TABLE:
		c->info.shape = REDDN_TABLE;
		c->geo = (struct reddn_geometry){.seed = be64toh(rep.table.hash_seed),
			.buckets = be64toh(rep.table.buckets),
			.max_key = be32toh(rep.table.max_key),
			.max_value = be32toh(rep.table.max_value),
			.offset_len = rep.table.offset_len};
		c->info.hash_seed = c->geo.seed;
		c->info.buckets = c->geo.buckets;
		c->info.max_key = c->geo.max_key;
		c->info.max_value = c->geo.max_value;
		wrong = reddn_geometry_wrong(&c->geo, c->info.arg_len);
		if (wrong || rep.table.probes != 2)
			return FAIL(a, -EPROTO, "protocol violated: %s",
				wrong ? wrong : "a key is in one of two buckets");
		if (c->info.slot_size < REDDN_SLOT_RECORD + sizeof(struct reddn_record))
			return FAIL(a, -EPROTO, "protocol violated: slots of %u bytes", c->info.slot_size);
		c->key_room = c->geo.max_key > REDDN_ARG_MAX ? c->geo.max_key : REDDN_ARG_MAX;
		return 0;
	default:
		return FAIL(
			a, -EPROTONOSUPPORT, "offloads of kind %u are unknown to this library", rep.shape);
	}
}

/* Wait for one event. 0 when it is the expected one. */
static int await(struct attempt *a, enum rdma_cm_event_type expected)
{
	struct pollfd p = {.fd = a->c->events->fd, .events = POLLIN};
	const char *host = a->opt->host;
	struct rdma_cm_event *ev;
	int r;

	do {
		r = poll(&p, 1, left_ms(a));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return FAIL(a, -errno, "poll: %m");
	if (r == 0)
		return FAIL(a, -ETIMEDOUT, "%s port %u: no answer in time", host, a->opt->port);
	if (rdma_get_cm_event(a->c->events, &ev) < 0)
		return FAIL(a, -errno, "rdma_get_cm_event: %m");
	if (ev->event == expected) {
		r = expected == RDMA_CM_EVENT_ESTABLISHED ? take_reply(a, &ev->param.conn) : 0;
	} else if (ev->event == RDMA_CM_EVENT_REJECTED) {
		r = refused(a, &ev->param.conn);
	} else if (ev->event == RDMA_CM_EVENT_ADDR_ERROR) {
		r = FAIL(a, -ENODEV, "%s: no RDMA device leads there", host);
	} else if (ev->event == RDMA_CM_EVENT_ROUTE_ERROR || ev->event == RDMA_CM_EVENT_UNREACHABLE) {
		r = FAIL(a, -EHOSTUNREACH, "%s port %u: unreachable", host, a->opt->port);
	} else {
		r = FAIL(a, -EIO, "%s: %s, status %d", host, rdma_event_str(ev->event), ev->status);
	}
	rdma_ack_cm_event(ev);
	return r;
}

static int resolve(struct attempt *a)
{
	__attribute__((cleanup(addrinfop))) struct addrinfo *list = NULL;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct reddn *c = a->c;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", a->opt->port);
	r = getaddrinfo(a->opt->host, port, &hints, &list);
	if (r)
		return FAIL(a, -EHOSTUNREACH, "%s: %s", a->opt->host, gai_strerror(r));
	c->events = rdma_create_event_channel();
	if (!c->events || rdma_create_id(c->events, &c->id, c, RDMA_PS_TCP) < 0) {
		c->id = NULL;
		return FAIL(a, -errno, "no RDMA connection manager: %m");
	}
	r = -ENODEV;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (rdma_resolve_addr(c->id, NULL, ai->ai_addr, left_ms(a)) == 0)
			r = await(a, RDMA_CM_EVENT_ADDR_RESOLVED);
		else
			r = FAIL(a, -errno, "%s: no RDMA device leads there: %m", a->opt->host);
		if (r == 0)
			break;
	}
	if (r < 0)
		return r;
	if (rdma_resolve_route(c->id, left_ms(a)) < 0)
		return FAIL(a, -errno, "%s: no route: %m", a->opt->host);
	return await(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int make_queues(struct attempt *a)
{
	struct reddn *c = a->c;
	uint32_t depth = c->info.depth;
	struct epoll_event ev = {.events = EPOLLIN};
	/* Two batches of receives; sends whose completion has not been seen; all of them may be flushed. */
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 * depth,
			.max_recv_wr = 2 * depth,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	/* Devices differ in how much data they take in a WQE, and not every one takes any. */
	static const uint32_t inline_bytes[] = {REDDN_WIRE_INLINE, 32, 0};
	int r;

	c->pd = ibv_alloc_pd(c->id->verbs);
	if (!c->pd)
		return FAIL(a, -errno, "no protection domain: %m");
	c->mr = ibv_reg_mr(c->pd, c->area, c->area_len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!c->mr)
		return FAIL(a, -errno, "cannot register %zu bytes for replies: %m", c->area_len);
	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return FAIL(a, -errno, "no completion channel: %m");
	/* Before there is a CQ: reddn_close empties the channel of its events. */
	r = unblock(c->channel->fd);
	if (r < 0)
		return FAIL(a, r, "fcntl: %s", strerror(-r));
	c->cq = ibv_create_cq(c->id->verbs, (int)(4 * depth + 16), c, c->channel, 0);
	if (!c->cq)
		return FAIL(a, -errno, "no completion queue for a depth of %u: %m", depth);
	attr.send_cq = attr.recv_cq = c->cq;
	r = -1;
	for (unsigned i = 0; r < 0 && i < sizeof(inline_bytes) / sizeof(inline_bytes[0]); i++) {
		attr.cap.max_inline_data = inline_bytes[i];
		r = rdma_create_qp(c->id, c->pd, &attr);
	}
	if (r < 0)
		return FAIL(a, -errno, "no queue pair for a depth of %u: %m", depth);
	c->inline_max =
		attr.cap.max_inline_data < REDDN_WIRE_INLINE ? attr.cap.max_inline_data : REDDN_WIRE_INLINE;
	r = unblock(c->events->fd);
	if (r < 0)
		return FAIL(a, r, "fcntl: %s", strerror(-r));
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->channel->fd, &ev) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->events->fd, &ev) < 0)
		return FAIL(a, -errno, "epoll: %m");
	for (int i = 0; i < 2 && r == 0; i++)
		r = reddn_post_receives(c);
	return r < 0 ? FAIL(a, r, "cannot post receives: %s", strerror(-r)) : 0;
}

/* Of this end of the connection, as the server will see it */
static void local_address(const struct reddn *c, uint8_t address[16])
{
	const struct sockaddr *sa = rdma_get_local_addr(c->id);

	memset(address, 0, 16);
	if (sa->sa_family == AF_INET) {
		memset(address + 10, 0xff, 2);
		memcpy(address + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	}
}

static int ask(struct attempt *a)
{
	struct reddn *c = a->c;
	struct reddn_wire_req req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.depth = htobe16(c->info.depth),
		.slot_addr = htobe64((uintptr_t)c->area),
		.slot_rkey = htobe32(c->mr->rkey),
		.slot_size = htobe32(c->info.slot_size)};
	struct rdma_conn_param param = {.private_data = &req,
		.private_data_len = sizeof(req),
		.retry_count = 7,
		.rnr_retry_count = 7};

	memcpy(req.offload, a->opt->offload, strlen(a->opt->offload));
	if (a->key.len) {
		uint8_t address[16];

		local_address(c, address);
		token_make(&a->key, &req, address, (uint64_t)time(NULL), req.token);
	}
	if (rdma_connect(c->id, &param) < 0)
		return FAIL(a, -errno, "cannot connect: %m");
	return await(a, RDMA_CM_EVENT_ESTABLISHED);
}

static int attempt(struct reddn **out, struct attempt *a, uint32_t slot_size)
{
	__attribute__((cleanup(connectionp))) struct reddn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return FAIL(a, -ENOMEM, "out of memory");
	a->c = c;
	a->need = 0;
	c->info.depth = a->opt->depth;
	c->info.slot_size = slot_size;
	c->timeout_ms = a->opt->timeout_ms;
	c->retry_ms = a->opt->retry_ms;
	c->spin_us = a->opt->spin_us;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		return FAIL(a, -errno, "epoll: %m");
	if (reddn_requests_init(c) < 0)
		return FAIL(
			a, -ENOMEM, "out of memory: %u reply slots of %u bytes", c->info.depth, slot_size);
	r = resolve(a);
	if (r == 0)
		r = make_queues(a);
	if (r == 0)
		r = ask(a);
	if (r < 0)
		return r;
	if (reddn_keys_init(c) < 0)
		return FAIL(a, -ENOMEM, "out of memory: %u keys of %zu bytes", c->info.depth, c->key_room);
	*out = c;
	c = NULL;
	return 0;
}

static int take_key(struct attempt *a)
{
	const struct reddn_options *opt = a->opt;
	char why[128];
	int r;

	if (opt->token_file && opt->token_key)
		return FAIL(a, -EINVAL, "token_file and token_key are both given");
	if (opt->token_key && (opt->token_len < TOKEN_KEY_MIN || opt->token_len > TOKEN_KEY_MAX))
		return FAIL(a, -EINVAL, "token_len %zu: a key has %d to %d bytes", opt->token_len,
			TOKEN_KEY_MIN, TOKEN_KEY_MAX);
	if (opt->token_key) {
		memcpy(a->key.bytes, opt->token_key, opt->token_len);
		a->key.len = opt->token_len;
	}
	if (!opt->token_file)
		return 0;
	r = token_key_read(opt->token_file, &a->key, why, sizeof(why));
	return r < 0 ? FAIL(a, -EINVAL, "key file %s: %s", opt->token_file, why) : 0;
}

PUBLIC int reddn_connect(struct reddn **out, const struct reddn_options *options, char *err, size_t errlen)
{
	struct reddn_options opt = *options;
	struct attempt a = {.opt = &opt, .err = err, .errlen = errlen};
	int r;

	if (!opt.host || !opt.offload)
		return FAIL(&a, -EINVAL, "a host and the name of an offload are needed");
	if (!*opt.offload || strlen(opt.offload) >= sizeof(((struct reddn_wire_req *)0)->offload))
		return FAIL(&a, -EINVAL, "offload \"%s\": a name has 1 to 23 bytes", opt.offload);
	if (opt.depth > REDDN_WIRE_MAX_DEPTH)
		return FAIL(&a, -EINVAL, "depth %u: up to %u", opt.depth, REDDN_WIRE_MAX_DEPTH);
	if (opt.slot_size % 64)
		return FAIL(&a, -EINVAL, "slot_size %u: must be a multiple of 64", opt.slot_size);
	for (unsigned i = 0; i < sizeof(opt.reserved) / sizeof(opt.reserved[0]); i++)
		if (opt.reserved[i])
			return FAIL(&a, -EINVAL, "reserved options must be 0");
	opt.port = opt.port ? opt.port : REDDN_WIRE_PORT;
	opt.depth = opt.depth ? opt.depth : DEPTH_DEFAULT;
	opt.timeout_ms = opt.timeout_ms ? opt.timeout_ms : TIMEOUT_DEFAULT;
	opt.retry_ms = opt.retry_ms ? opt.retry_ms : RETRY_DEFAULT;
	opt.spin_us = opt.spin_us ? opt.spin_us : SPIN_DEFAULT;
	a.deadline = now_ms() + opt.timeout_ms;
	r = take_key(&a);
	if (r == 0)
		r = attempt(out, &a, opt.slot_size ? opt.slot_size : SLOT_GUESS);
	if (r == -EMSGSIZE && !opt.slot_size && a.need > SLOT_GUESS && a.need % 64 == 0)
		r = attempt(out, &a, a.need);
	token_key_wipe(&a.key);
	return r;
}
