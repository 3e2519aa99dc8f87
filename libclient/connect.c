/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connect.h"

#include "libclient/handshake.h"
#include "libclient/options.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "protocol/wire.h"
#include "util/address.h"
#include "util/clock.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/*
 * SLOT_GUESS: asked for first if neither the caller nor an earlier session knows what the offload needs.
 * SLOT_LEARNED_MAX: bytes that the server may ask for; a record of a table has less than 16 MiB
 * (reddn-table.h).
 * NEIGHBOUR_MS: so long an attempt after the first waits for the address of a host on the link. A host that
 * is there answers sooner, and what it answers later is known to the next attempt. One that waits for longer
 * may miss the host: after three seconds Linux asks no more until somebody needs the address
 * (net/core/neighbour.c).
 */
enum {
	NEIGHBOUR_MS = 20,
	DEPTH_DEFAULT = 16,
	SLOT_GUESS = 4096,
	SLOT_LEARNED_MAX = REDDN_SLOT_RECORD + REDDN_WIRE_RECORDS * (16 << 20),
};

#define FAIL(a, code, ...) reddn_fail(code, (a)->err, sizeof((a)->err), __VA_ARGS__)

static void connector_set(struct reddn_connector *a, enum reddn_connect_state state)
{
	static const unsigned from[] = {
		[REDDN_CONNECT_IDLE] = 1 << REDDN_CONNECT_ADDRESS | 1 << REDDN_CONNECT_ROUTE |
				       1 << REDDN_CONNECT_ANSWER | 1 << REDDN_CONNECT_ENDED |
				       1 << REDDN_CONNECT_DONE | 1 << REDDN_CONNECT_FAILED,
		[REDDN_CONNECT_ADDRESS] = 1 << REDDN_CONNECT_IDLE | 1 << REDDN_CONNECT_ADDRESS |
					  1 << REDDN_CONNECT_ROUTE | 1 << REDDN_CONNECT_ANSWER |
					  1 << REDDN_CONNECT_ENDED,
		[REDDN_CONNECT_ROUTE] = 1 << REDDN_CONNECT_ADDRESS,
		[REDDN_CONNECT_ANSWER] = 1 << REDDN_CONNECT_ROUTE,
		[REDDN_CONNECT_ENDED] = 1 << REDDN_CONNECT_ANSWER,
		[REDDN_CONNECT_DONE] = 1 << REDDN_CONNECT_ANSWER,
		[REDDN_CONNECT_FAILED] = 1 << REDDN_CONNECT_IDLE | 1 << REDDN_CONNECT_ADDRESS |
					 1 << REDDN_CONNECT_ROUTE | 1 << REDDN_CONNECT_ANSWER |
					 1 << REDDN_CONNECT_ENDED,
	};

	assert(from[state] & 1u << a->state);
	a->state = state;
}

static const struct reddn_host *connector_host(const struct reddn_connector *a)
{
	return reddn_hosts_at(&a->hosts);
}

static bool is_waiting(const struct reddn_connector *a)
{
	return a->state == REDDN_CONNECT_ADDRESS || a->state == REDDN_CONNECT_ROUTE ||
	       a->state == REDDN_CONNECT_ANSWER || a->state == REDDN_CONNECT_ENDED;
}

void reddn_connector_alarm_ns(struct reddn_connector *a, uint64_t ns)
{
	struct itimerspec at = {
		.it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) + !ns}};

	/* For the timer, 0 is never */
	if (ns == UINT64_MAX)
		at = (struct itimerspec){0};
	a->alarm = ns == UINT64_MAX ? ns : ns / 1000000;
	timerfd_settime(a->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void reddn_connector_alarm(struct reddn_connector *a, uint64_t ms)
{
	reddn_connector_alarm_ns(a, ms == UINT64_MAX ? ms : ms * 1000000);
}

static void try_until(struct reddn_connector *a, uint64_t ms)
{
	a->until = ms;
	reddn_connector_alarm(a, ms);
}

static int time_left(const struct reddn_connector *a)
{
	uint64_t now = clock_ms();

	return now < a->until ? (int)(a->until - now) : 0;
}

static bool is_first(const struct reddn_connector *a)
{
	return a->k == a->session.connection;
}

/* Here is the server: its other addresses are not tried, so this one has their time. The hosts behind it keep
 * as much each, however often it answers. */
static void answered(struct reddn_connector *a)
{
	uint64_t now = clock_ms(), left = now < a->deadline ? a->deadline - now : 0;

	if (!a->answered)
		try_until(a, now + left / a->hosts.left);
	a->answered = true;
}

static int refused(struct reddn_connector *a, const struct rdma_conn_param *p)
{
	struct reddn_wire_rej rej;

	if (!reddn_read_rej(&rej, p))
		return FAIL(a, -ECONNREFUSED, "%s port %u: connection refused", connector_host(a)->name,
			connector_host(a)->port);
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

static int accepted(struct reddn_connector *a, const struct rdma_conn_param *p)
{
	answered(a);
	return is_first(a) ? reddn_read_rep(&a->session, p, a->err, sizeof(a->err))
			   : reddn_compare_rep(&a->session, p, a->err, sizeof(a->err));
}

static int too_late(struct reddn_connector *a)
{
	return FAIL(a, -ETIMEDOUT, "%s port %u: no answer in time", connector_host(a)->name,
		connector_host(a)->port);
}

/* What an event means that is not the expected one. */
static int failed(struct reddn_connector *a, const struct rdma_cm_event *ev)
{
	const char *host = connector_host(a)->name;

	switch (ev->event) {
	case RDMA_CM_EVENT_REJECTED:
		return refused(a, &ev->param.conn);
	case RDMA_CM_EVENT_ADDR_ERROR:
		return ev->status == -ETIMEDOUT ? too_late(a)
						: FAIL(a, -ENODEV, "%s: no RDMA device leads there", host);
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return FAIL(a, -EHOSTUNREACH, "%s port %u: unreachable", host, connector_host(a)->port);
	default:
		return FAIL(a, -EIO, "%s: %s, status %d", host, rdma_event_str(ev->event), ev->status);
	}
}

/* 0: it is the event that the state waits for */
static int check_event(struct reddn_connector *a, const struct rdma_cm_event *ev)
{
	const enum rdma_cm_event_type expected =
		a->state == REDDN_CONNECT_ADDRESS ? RDMA_CM_EVENT_ADDR_RESOLVED
		: a->state == REDDN_CONNECT_ROUTE ? RDMA_CM_EVENT_ROUTE_RESOLVED
						  : reddn_queue_pair_answer(a->k);

	if (ev->id != a->k->id)
		return FAIL(a, -ECONNRESET, "the server closed another connection of the handle: %s",
			rdma_event_str(ev->event));
	if (a->state == REDDN_CONNECT_ENDED)
		return FAIL(a, -ECONNRESET,
			"%s port %u: the server ended the connection after it accepted it",
			connector_host(a)->name, connector_host(a)->port);
	if (ev->event != expected)
		return failed(a, ev);
	return a->state == REDDN_CONNECT_ANSWER ? accepted(a, &ev->param.conn) : 0;
}

static int new_id(struct reddn_connector *a)
{
	if (rdma_create_id(a->session.events, &a->k->id, NULL, RDMA_PS_TCP) == 0)
		return 0;
	a->k->id = NULL;
	return FAIL(a, -errno, "no RDMA connection manager: %m");
}

static int resolve_address(struct reddn_connector *a, struct sockaddr *from, struct sockaddr *to)
{
	int left = time_left(a), r = new_id(a);

	if (r < 0)
		return r;
	if (a->begun > 1 && left > NEIGHBOUR_MS)
		left = NEIGHBOUR_MS;
	if (rdma_resolve_addr(a->k->id, from, to, left) < 0)
		return FAIL(a, -errno, "%s: no RDMA device leads there: %m", connector_host(a)->name);
	connector_set(a, REDDN_CONNECT_ADDRESS);
	return 0;
}

/* With a new id: one that was to lead to another address is bound (Linux cma.c, rdma_resolve_addr). */
static int connect_first(struct reddn_connector *a)
{
	return resolve_address(a, NULL, a->at->ai_addr);
}

/* Between the addresses of the first connection, and so on its device; from another port */
static int connect_further(struct reddn_connector *a)
{
	struct rdma_cm_id *first = a->session.connection->id;
	struct sockaddr_storage from = address_any_port(rdma_get_local_addr(first));

	if (!a->session.secret)
		return FAIL(a, -EOPNOTSUPP, "the server knows no sessions of several connections");
	return resolve_address(a, (struct sockaddr *)&from, rdma_get_peer_addr(first));
}

/* What makes a queue pair need not wait for the event. */
static int resolve_route(struct reddn_connector *a)
{
	int left = time_left(a), r = 0;

	/* The connection manager takes no 0 (Linux cma.c, rdma_resolve_route) */
	if (!left)
		return too_late(a);
	if (rdma_resolve_route(a->k->id, left) < 0)
		return FAIL(a, -errno, "%s: no route: %m", connector_host(a)->name);
	connector_set(a, REDDN_CONNECT_ROUTE);
	if (is_first(a))
		r = reddn_queues_init(&a->session, a->err, sizeof(a->err));
	return r < 0 ? r : reddn_queue_pair_init(&a->session, a->k, a->err, sizeof(a->err));
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

static void name_session(const struct reddn_session *s, struct reddn_wire_req *req)
{
	const struct reddn_wire_join join = {
		.session = htobe64(s->info.session), .secret = htobe64(s->secret)};

	req->flags |= REDDN_REQ_JOIN;
	memcpy(req->offload, &join, sizeof(join));
}

static int send_req(struct reddn_connector *a)
{
	const struct reddn_session *s = &a->session;
	bool iwarp = a->k->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	uint8_t flags = (a->opt.slot_size ? 0 : REDDN_REQ_SLOT_GUESS) | (iwarp ? REDDN_REQ_NO_IMMEDIATES : 0);
	struct reddn_wire_req req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = flags,
		.depth = htobe16((uint16_t)s->depth),
		.slot_addr = htobe64((uintptr_t)reddn_slot_mem(s, a->k->base)),
		.slot_rkey = htobe32(s->mr->rkey),
		.slot_size = htobe32(s->info.slot_size)};
	struct rdma_conn_param param = {.private_data = &req,
		.private_data_len = sizeof(req),
		.qp_num = a->k->qp->qp_num,
		.retry_count = 7,
		.rnr_retry_count = 7};

	if (is_first(a))
		memcpy(req.offload, a->opt.offload, strlen(a->opt.offload));
	else
		name_session(s, &req);
	if (a->key.len) {
		struct token_ends ends = ends_of(a->k);

		token_make(&a->key, &req, &ends, (uint64_t)time(NULL), req.token);
	}
	if (rdma_connect(a->k->id, &param) < 0)
		return FAIL(a, -errno, "cannot connect: %m");
	a->asked = true;
	return 0;
}

/* Its route is resolved. What needs no answer of the server is done while it works on the request. */
static int ask_server(struct reddn_connector *a)
{
	int r = reddn_queue_pair_begin(&a->session, a->k, a->err, sizeof(a->err));

	if (r == 0)
		r = send_req(a);
	if (r < 0)
		return r;
	connector_set(a, REDDN_CONNECT_ANSWER);
	r = reddn_queue_pair_prepare(&a->session, a->k, a->err, sizeof(a->err));
	return r < 0 || !is_first(a) ? r : reddn_queues_watch(&a->session, a->epoll, a->err, sizeof(a->err));
}

/* The session may have more: its offload needed more before */
static uint32_t slot_size_needed(const struct reddn_session *s)
{
	return s->info.reply_max <= SLOT_GUESS ? SLOT_GUESS : (s->info.reply_max + 63) & ~63u;
}

static int connect_queues(struct reddn_connector *a)
{
	int r = reddn_queue_pair_connect(a->k, a->err, sizeof(a->err));

	if (r < 0)
		return r;
	if (r == 1) {
		connector_set(a, REDDN_CONNECT_ENDED);
		return 0;
	}
	if (++a->k < a->session.connection + a->session.info.connections)
		return connect_further(a);
	reddn_session_complete(&a->session);
	reddn_hosts_at(&a->hosts)->sessions++;
	reddn_hosts_at(&a->hosts)->slot_size = slot_size_needed(&a->session);
	connector_set(a, REDDN_CONNECT_DONE);
	return 0;
}

/* ---- one attempt after the other ---- */

static int attempt(struct reddn_connector *a)
{
	struct reddn_session *s = &a->session;
	int r;

	*s = (struct reddn_session){.host = a->hosts.at,
		.depth = a->depth,
		.into = a->opt.flags & REDDN_INTO,
		.info = {.connections = a->opt.connections, .slot_size = a->slot_size}};
	a->slot_required = 0;
	a->depth_allowed = 0;
	if (reddn_session_init(s) < 0)
		return FAIL(
			a, -ENOMEM, "out of memory: %u reply slots of %u bytes", s->info.depth, a->slot_size);
	a->k = s->connection;
	r = reddn_queues_open(s, a->epoll, a->err, sizeof(a->err));
	return r < 0 ? r : connect_first(a);
}

/* A recycled offload takes a depth that is a power of two: the next one has room for what was asked for */
static bool may_be_rounded(const struct reddn_connector *a)
{
	return a->depth_allowed > a->depth && a->depth_allowed < 2 * a->depth &&
	       !(a->depth_allowed & (a->depth_allowed - 1)) &&
	       a->depth_allowed * a->opt.connections <= UINT16_MAX;
}

/* The defaults give way to what the server wants: slots of the size that it has reported, and the most that
 * it allows of the depth. */
static bool attempt_fits(struct reddn_connector *a, int error)
{
	if (!a->opt.slot_size && !a->sized && error == -EMSGSIZE && a->slot_required > a->slot_size &&
		a->slot_required <= SLOT_LEARNED_MAX && a->slot_required % 64 == 0) {
		a->slot_size = a->slot_required;
		a->sized = true;
		return true;
	}
	if (!may_be_rounded(a) &&
		((a->opt.depth && !a->yields) || !a->depth_allowed || a->depth_allowed >= a->depth))
		return false;
	a->depth = a->depth_allowed;
	a->sized = false;
	return true;
}

/* Slots of the size that the last session needed. If that is too small now, the server reports what it takes.
 */
static void address_begin(struct reddn_connector *a)
{
	uint32_t known = connector_host(a)->slot_size;

	a->depth = a->opt.depth ? a->opt.depth : DEPTH_DEFAULT;
	a->slot_size = a->opt.slot_size ? a->opt.slot_size : known ? known : SLOT_GUESS;
	a->sized = false;
	a->asked = false;
	try_until(a, reddn_hosts_until(&a->hosts, a->at, clock_ms(), a->deadline));
}

static void keep_failure(struct reddn_connector *a, int error)
{
	const int telling = a->answered ? REDDN_ANSWERED : a->asked ? REDDN_ASKED : REDDN_NOT_ASKED;

	if (a->hosts.n > 1 || !a->answered)
		reddn_hosts_add(&a->hosts, a->at, a->err, sizeof(a->err));
	if (telling < (int)a->telling)
		return;
	a->error = error;
	a->telling = telling;
	memcpy(a->words, a->err, sizeof(a->words));
}

/* Be at the first host with an address, from this one on. False: there is none. */
static bool host_begin(struct reddn_connector *a)
{
	do {
		a->at = connector_host(a)->list;
		a->answered = a->asked = false;
		if (a->at) {
			address_begin(a);
			return true;
		}
		FAIL(a, -EHOSTUNREACH, "%s: not found", connector_host(a)->name);
		keep_failure(a, -EHOSTUNREACH);
		a->all_answered = false;
	} while (reddn_hosts_next(&a->hosts));
	return false;
}

/* False: it was the last one. One who refuses is not asked for a while, but for one that is going to come
 * back. */
static bool address_next(struct reddn_connector *a, int error)
{
	keep_failure(a, error);
	if (!a->answered && a->at->ai_next) {
		a->at = a->at->ai_next;
		address_begin(a);
		return true;
	}
	a->all_answered &= a->answered;
	if (a->answered && error != -ESHUTDOWN)
		reddn_hosts_at(&a->hosts)->out_until = clock_ms() + REDDN_HOST_OUT_MS;
	return reddn_hosts_next(&a->hosts) && host_begin(a);
}

/* After a step, with its result. */
static void go_on(struct reddn_connector *a, int r)
{
	while (r < 0) {
		reddn_queues_free(&a->session);
		if (!attempt_fits(a, r) && !address_next(a, r)) {
			connector_set(a, REDDN_CONNECT_FAILED);
			return;
		}
		r = attempt(a);
	}
}

/* An operator may have put another one there. */
static void read_key_again(struct reddn_connector *a)
{
	struct token_key key = {0};
	char why[128];

	if (a->opt.token_file && token_key_read(a->opt.token_file, &key, why, sizeof(why)) == 0)
		a->key = key;
	token_key_wipe(&key);
}

void reddn_connector_begin(struct reddn_connector *a, enum reddn_choice choice, unsigned host)
{
	uint64_t now = clock_ms();

	assert(a->state == REDDN_CONNECT_IDLE);
	if (!reddn_hosts_choose(&a->hosts, choice, host, now))
		return;
	if (a->begun++) {
		reddn_hosts_look_up_again(&a->hosts);
		read_key_again(a);
	}
	a->deadline = now + a->opt.timeout_ms;
	a->telling = REDDN_NOT_ASKED;
	a->all_answered = a->hosts.left == a->hosts.n;
	if (host_begin(a))
		go_on(a, attempt(a));
	else
		connector_set(a, REDDN_CONNECT_FAILED);
}

/* 1: there is no event. */
static int take_event(struct reddn_connector *a)
{
	struct rdma_cm_event *ev;
	int r;

	if (rdma_get_cm_event(a->session.events, &ev) < 0) {
		if (errno == EINTR)
			return 0;
		if (errno != EAGAIN)
			return FAIL(a, -errno, "connection manager: %m");
		return time_left(a) ? 1 : too_late(a);
	}
	r = check_event(a, ev);
	rdma_ack_cm_event(ev);
	if (r < 0)
		return r;
	if (a->state == REDDN_CONNECT_ADDRESS)
		return resolve_route(a);
	return a->state == REDDN_CONNECT_ROUTE ? ask_server(a) : connect_queues(a);
}

void reddn_connector_step(struct reddn_connector *a)
{
	while (is_waiting(a)) {
		int r = take_event(a);

		if (r == 1)
			return;
		go_on(a, r);
	}
}

void reddn_connector_wait(struct reddn_connector *a)
{
	struct epoll_event ev;

	reddn_connector_step(a);
	while (is_waiting(a)) {
		epoll_wait(a->epoll, &ev, 1, -1);
		reddn_connector_step(a);
	}
}

void reddn_connector_rest(struct reddn_connector *a)
{
	connector_set(a, REDDN_CONNECT_IDLE);
	reddn_connector_alarm(a, UINT64_MAX);
}

void reddn_connector_abandon(struct reddn_connector *a)
{
	reddn_queues_free(&a->session);
	reddn_connector_rest(a);
}

struct reddn_session reddn_connector_take(struct reddn_connector *a)
{
	assert(a->state == REDDN_CONNECT_DONE);
	reddn_connector_rest(a);
	return a->session;
}

/* ---- */

static int make_descriptors(struct reddn_connector *a)
{
	struct epoll_event ev = {.events = EPOLLIN};

	a->alarm = UINT64_MAX;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->epoll < 0 || a->timer < 0 || epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->timer, &ev) < 0)
		return reddn_fail(-errno, a->words, sizeof(a->words), "epoll: %m");
	return 0;
}

int reddn_connector_init(struct reddn_connector *a, const struct reddn_options *opt)
{
	struct reddn_options *o = &a->opt;
	int r;

	a->epoll = a->timer = -1;
	*o = *opt;
	r = reddn_options_read(o, &a->key, a->words, sizeof(a->words));
	o->host = NULL; /* it is read into the hosts */
	o->offload = r < 0 ? NULL : strdup(opt->offload);
	o->token_file = r < 0 || !opt->token_file ? NULL : strdup(opt->token_file);
	o->token_key = NULL; /* it has been copied */
	if (r < 0)
		return r;
	if (!o->offload || (opt->token_file && !o->token_file))
		return reddn_fail(-ENOMEM, a->words, sizeof(a->words), "out of memory");
	r = reddn_hosts_read(
		&a->hosts, opt->host, o->port, o->policy == REDDN_SPREAD, a->words, sizeof(a->words));
	if (r < 0)
		return r;
	r = reddn_hosts_look_up(&a->hosts, clock_ms() + o->timeout_ms, a->words, sizeof(a->words));
	return r < 0 ? r : make_descriptors(a);
}

int reddn_connector_init_bare(struct reddn_connector *a, const struct reddn_options *opt)
{
	a->opt = *opt;
	a->opt.host = a->opt.offload = a->opt.token_file = NULL;
	a->opt.token_key = NULL;
	a->epoll = a->timer = -1;
	return make_descriptors(a);
}

int reddn_connector_copy(struct reddn_connector *a, const struct reddn_connector *of, const char *offload,
	unsigned host, const struct sockaddr *known)
{
	struct reddn_options *o = &a->opt;
	int r;

	a->epoll = a->timer = -1;
	a->yields = true;
	a->key = of->key;
	*o = of->opt;
	o->slot_size = 0;
	o->offload = strdup(offload);
	o->token_file = of->opt.token_file ? strdup(of->opt.token_file) : NULL;
	if (!o->offload || (of->opt.token_file && !o->token_file))
		return -ENOMEM;
	r = reddn_hosts_copy(&a->hosts, &of->hosts, host, known);
	if (r < 0)
		return r;
	/* So the first attempt takes what was found */
	a->begun = 1;
	return make_descriptors(a);
}

void reddn_connector_deinit(struct reddn_connector *a)
{
	if (is_waiting(a) || a->state == REDDN_CONNECT_DONE)
		reddn_queues_free(&a->session);
	reddn_hosts_deinit(&a->hosts);
	if (a->timer >= 0)
		close(a->timer);
	if (a->epoll >= 0)
		close(a->epoll);
	token_key_wipe(&a->key);
	free((char *)a->opt.offload);
	free((char *)a->opt.token_file);
}
