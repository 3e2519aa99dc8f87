/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/addresses.h"
#include "libclient/connection.h"
#include "libclient/handshake.h"
#include "libclient/options.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "libclient/slot-sizes.h"
#include "protocol/token.h"
#include "protocol/wire.h"
#include "util/address.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * SLOT_GUESS: asked for first if neither the caller nor an earlier connection knows what the offload needs.
 * SLOT_LEARNED_MAX: bytes that the server may ask for; a record of a table has less than 16 MiB
 * (reddn-table.h).
 */
enum {
	DEPTH_DEFAULT = 16,
	SLOT_GUESS = 4096,
	SLOT_LEARNED_MAX = REDDN_SLOT_RECORD + REDDN_WIRE_KEYS * (16 << 20),
	ERR_BYTES = 512
};

/* Why an attempt failed. One that had sent its REQ is the more telling. */
struct failure {
	int error;
	bool asked;
	char err[ERR_BYTES];
};

/* One attempt to connect. */
struct attempt {
	struct reddn *c;
	struct reddn_connection *k; /* the one that is being made */
	const struct reddn_options *opt;
	struct sockaddr *to;    /* the address of the server */
	struct token_key key;   /* len 0: none */
	uint64_t deadline;      /* ms, of all attempts */
	uint64_t until;         /* ms, of those to this address */
	bool asked;             /* a REQ was sent */
	bool answered;          /* by a REP or a reddnd's REJ: no other address is tried */
	uint32_t slot_required; /* the slot size that the server asked for */
	unsigned depth;         /* that is asked for */
	unsigned depth_allowed; /* the most that the server allows, if it refused @depth; else 0 */
	char err[ERR_BYTES];
};

#define FAIL(a, code, ...) reddn_fail(code, (a)->err, sizeof((a)->err), __VA_ARGS__)

DEFINE_CLEANUP(struct reddn *, reddn_close)
DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

static bool is_first(const struct attempt *a)
{
	return a->k == a->c->connection;
}

/* Here is the server: what is left of the time is for it. */
static void answered(struct attempt *a)
{
	a->answered = true;
	a->until = a->deadline;
}

static int refused(struct attempt *a, const struct rdma_conn_param *p)
{
	struct reddn_wire_rej rej;

	if (!reddn_read_rej(&rej, p))
		return FAIL(a, -ECONNREFUSED, "%s port %u: connection refused", a->opt->host, a->opt->port);
	answered(a);
	if (rej.reason == REDDN_REJ_SLOT)
		a->slot_required = be32toh(rej.detail);
	if (rej.reason == REDDN_REJ_DEPTH)
		a->depth_allowed = be32toh(rej.detail);
	if (rej.reason == REDDN_REJ_VERSION && be32toh(rej.detail) < REDDN_WIRE_VERSION)
		return FAIL(a, -EPROTONOSUPPORT,
			"refused by the server: it speaks version %u of the protocol, this library %d: the "
			"server must be updated",
			be32toh(rej.detail), REDDN_WIRE_VERSION);
	return FAIL(a, reddn_rej_error(&rej), "refused by the server: %s",
		*rej.text ? rej.text : "no reason given");
}

static int accepted(struct attempt *a, const struct rdma_conn_param *p)
{
	answered(a);
	return is_first(a) ? reddn_read_rep(a->c, p, a->err, sizeof(a->err))
			   : reddn_compare_rep(a->c, p, a->err, sizeof(a->err));
}

static int too_late(struct attempt *a)
{
	return FAIL(a, -ETIMEDOUT, "%s port %u: no answer in time", a->opt->host, a->opt->port);
}

/* What an event means that is not the expected one. */
static int failed(struct attempt *a, const struct rdma_cm_event *ev)
{
	const char *host = a->opt->host;

	switch (ev->event) {
	case RDMA_CM_EVENT_REJECTED:
		return refused(a, &ev->param.conn);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return ev->status == -ETIMEDOUT ? too_late(a)
						: FAIL(a, -ENODEV, "%s: no RDMA device leads there", host);
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return FAIL(a, -EHOSTUNREACH, "%s port %u: unreachable", host, a->opt->port);
	default:
		return FAIL(a, -EIO, "%s: %s, status %d", host, rdma_event_str(ev->event), ev->status);
	}
}

/* Wait for one event. 0 if it is the expected one. */
static int await(struct attempt *a, enum rdma_cm_event_type expected)
{
	struct rdma_cm_event *ev;
	int r = reddn_next_event(a->c->events, a->until, &ev);

	if (r == -ETIMEDOUT)
		return too_late(a);
	if (r < 0)
		return FAIL(a, r, "connection manager: %s", strerror(-r));
	if (ev->id != a->k->id)
		r = FAIL(a, -ECONNRESET, "the server closed another connection of the handle: %s",
			rdma_event_str(ev->event));
	else if (ev->event != expected)
		r = failed(a, ev);
	else if (expected == reddn_queue_pair_answer(a->k))
		r = accepted(a, &ev->param.conn);
	rdma_ack_cm_event(ev);
	return r;
}

static int new_id(struct attempt *a)
{
	if (rdma_create_id(a->c->events, &a->k->id, a->c, RDMA_PS_TCP) == 0)
		return 0;
	a->k->id = NULL;
	return FAIL(a, -errno, "no RDMA connection manager: %m");
}

static int resolve_address(struct attempt *a, struct sockaddr *from, struct sockaddr *to)
{
	if (rdma_resolve_addr(a->k->id, from, to, reddn_time_left(a->until)) == 0)
		return await(a, RDMA_CM_EVENT_ADDR_RESOLVED);
	return FAIL(a, -errno, "%s: no RDMA device leads there: %m", a->opt->host);
}

/* What makes a queue pair need not wait for the event. */
static int begin_route(struct attempt *a)
{
	int left = reddn_time_left(a->until);

	/* The connection manager takes no 0 (Linux cma.c, rdma_resolve_route) */
	if (!left)
		return too_late(a);
	if (rdma_resolve_route(a->k->id, left) < 0)
		return FAIL(a, -errno, "%s: no route: %m", a->opt->host);
	return 0;
}

/* With a new id: one that was to lead to another address is bound (Linux cma.c, rdma_resolve_addr). */
static int resolve(struct attempt *a)
{
	int r;

	a->c->events = rdma_create_event_channel();
	if (!a->c->events)
		return FAIL(a, -errno, "no RDMA connection manager: %m");
	r = new_id(a);
	if (r == 0)
		r = resolve_address(a, NULL, a->to);
	return r < 0 ? r : begin_route(a);
}

/* Between the addresses of the first connection, and so on its device; from another port */
static int resolve_again(struct attempt *a)
{
	struct rdma_cm_id *first = a->c->connection[0].id;
	struct sockaddr_storage from = address_any_port(rdma_get_local_addr(first));
	int r = new_id(a);

	if (r == 0)
		r = resolve_address(a, (struct sockaddr *)&from, rdma_get_peer_addr(first));
	return r < 0 ? r : begin_route(a);
}

/* As the server knows them from its end */
static struct token_ends ends_of(const struct reddn_connection *k)
{
	struct rdma_cm_id *id = k->id;
	struct token_ends ends = {.port = be16toh(rdma_get_dst_port(id)), .client_qpn = k->qp->qp_num};

	address_read(rdma_get_local_addr(id), ends.client);
	address_read(rdma_get_peer_addr(id), ends.server);
	if (id->route.num_paths)
		memcpy(ends.gid, id->route.path_rec[0].sgid.raw, sizeof(ends.gid));
	return ends;
}

static void name_session(const struct reddn *c, struct reddn_wire_req *req)
{
	const struct reddn_wire_join join = {
		.session = htobe64(c->info.session), .secret = htobe64(c->secret)};

	req->flags |= REDDN_REQ_JOIN;
	memcpy(req->offload, &join, sizeof(join));
}

static int send_req(struct attempt *a)
{
	struct reddn *c = a->c;
	bool iwarp = a->k->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	uint8_t flags =
		(a->opt->slot_size ? 0 : REDDN_REQ_SLOT_GUESS) | (iwarp ? REDDN_REQ_NO_IMMEDIATES : 0);
	struct reddn_wire_req req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = flags,
		.depth = htobe16((uint16_t)c->depth),
		.slot_addr = htobe64((uintptr_t)reddn_slot_mem(c, a->k->base)),
		.slot_rkey = htobe32(c->mr->rkey),
		.slot_size = htobe32(c->info.slot_size)};
	struct rdma_conn_param param = {.private_data = &req,
		.private_data_len = sizeof(req),
		.qp_num = a->k->qp->qp_num,
		.retry_count = 7,
		.rnr_retry_count = 7};

	if (is_first(a))
		memcpy(req.offload, a->opt->offload, strlen(a->opt->offload));
	else
		name_session(c, &req);
	if (a->key.len) {
		struct token_ends ends = ends_of(a->k);

		token_make(&a->key, &req, &ends, (uint64_t)time(NULL), req.token);
	}
	if (rdma_connect(a->k->id, &param) < 0)
		return FAIL(a, -errno, "cannot connect: %m");
	a->asked = true;
	return 0;
}

/* Its route is being resolved. */
static int connect_one(struct attempt *a)
{
	int r = reddn_queue_pair_init(a->c, a->k, a->err, sizeof(a->err));

	if (r == 0)
		r = await(a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (r == 0)
		r = reddn_queue_pair_begin(a->k, a->err, sizeof(a->err));
	if (r == 0)
		r = send_req(a);
	if (r == 0)
		r = reddn_queue_pair_prepare(a->k, a->err, sizeof(a->err));
	if (r == 0 && is_first(a))
		r = reddn_queues_watch(a->c, a->err, sizeof(a->err));
	if (r == 0)
		r = await(a, reddn_queue_pair_answer(a->k));
	return r < 0 ? r : reddn_queue_pair_connect(a->k, a->err, sizeof(a->err));
}

static int connect_first(struct attempt *a)
{
	int r = resolve(a);

	if (r == 0)
		r = reddn_queues_init(a->c, a->err, sizeof(a->err));
	return r < 0 ? r : connect_one(a);
}

static int connect_further(struct attempt *a)
{
	int r = 0;

	if (a->c->info.connections > 1 && !a->c->secret)
		return FAIL(a, -EOPNOTSUPP, "the server knows no sessions of several connections");
	while (r == 0 && ++a->k < a->c->connection + a->c->info.connections) {
		r = resolve_again(a);
		if (r == 0)
			r = connect_one(a);
	}
	return r;
}

static int attempt(struct reddn **out, struct attempt *a, uint32_t slot_size)
{
	CLEANUP(reddn_closep) struct reddn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return FAIL(a, -ENOMEM, "out of memory");
	a->c = c;
	a->k = c->connection;
	a->slot_required = 0;
	a->depth_allowed = 0;
	c->depth = a->depth;
	c->info.connections = a->opt->connections;
	c->info.slot_size = slot_size;
	c->timeout_ms = a->opt->timeout_ms;
	c->retry_ms = a->opt->retry_ms;
	c->spin_us = a->opt->spin_us;
	c->epoll = -1;
	if (reddn_requests_init(c) < 0)
		return FAIL(
			a, -ENOMEM, "out of memory: %u reply slots of %u bytes", c->info.depth, slot_size);
	r = connect_first(a);
	if (r == 0)
		r = connect_further(a);
	if (r < 0)
		return r;
	if (reddn_keys_init(c) < 0)
		return FAIL(a, -ENOMEM, "out of memory: %u keys of %zu bytes", c->nrequests, c->key_room);
	*out = steal_ptr(&c);
	return 0;
}

/* Slots of the size that the offload asked for before. If that is too small now, the server reports what
 * it takes */
static int attempt_guesses(struct reddn **out, struct attempt *a)
{
	const struct reddn_options *opt = a->opt;
	uint32_t known = reddn_slot_size(opt->host, opt->port, opt->offload);
	uint32_t guess = known ? known : SLOT_GUESS;
	int r = attempt(out, a, guess);

	if (r != -EMSGSIZE || a->slot_required <= guess || a->slot_required > SLOT_LEARNED_MAX ||
		a->slot_required % 64)
		return r;
	reddn_slot_size_set(opt->host, opt->port, opt->offload, a->slot_required);
	return attempt(out, a, a->slot_required);
}

static int attempt_sizes(struct reddn **out, struct attempt *a)
{
	return a->opt->slot_size ? attempt(out, a, a->opt->slot_size) : attempt_guesses(out, a);
}

/* The default depth gives way to the most that the server allows */
static int attempt_address(struct reddn **out, struct attempt *a)
{
	int r;

	a->depth = a->opt->depth ? a->opt->depth : DEPTH_DEFAULT;
	r = attempt_sizes(out, a);
	if (a->opt->depth || !a->depth_allowed || a->depth_allowed >= a->depth)
		return r;
	a->depth = a->depth_allowed;
	return attempt_sizes(out, a);
}

/* One address after the other, until there is an answer. Returns the last of the most telling failures. */
static int attempt_addresses(struct reddn **out, struct attempt *a, const struct addrinfo *list)
{
	struct failure failure = {0};

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		int r;

		a->to = ai->ai_addr;
		a->until = reddn_addresses_until(ai, clock_ms(), a->deadline);
		a->asked = false;
		r = attempt_address(out, a);
		if (r == 0 || a->answered)
			return r;
		reddn_addresses_add(list, ai, a->err, sizeof(a->err));
		if (a->asked || !failure.asked) {
			failure.error = r;
			failure.asked = a->asked;
			memcpy(failure.err, a->err, sizeof(a->err));
		}
	}
	memcpy(a->err, failure.err, sizeof(a->err));
	return failure.error;
}

PUBLIC int reddn_connect(struct reddn **out, const struct reddn_options *options, char *err, size_t errlen)
{
	CLEANUP(freeaddrinfop) struct addrinfo *list = NULL;
	struct reddn_options opt = *options;
	struct attempt a = {.opt = &opt};
	int r = reddn_options_read(&opt, &a.key, a.err, sizeof(a.err));

	if (r == 0)
		r = reddn_addresses_find(&list, opt.host, opt.port, a.err, sizeof(a.err));
	a.deadline = clock_ms() + opt.timeout_ms;
	if (r == 0)
		r = attempt_addresses(out, &a, list);
	token_key_wipe(&a.key);
	/* An attempt that failed, with slots too small or at another address, has left its reason. */
	return reddn_fail(r, err, errlen, "%s", r < 0 ? a.err : "");
}
