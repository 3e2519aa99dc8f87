/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/connect.h"

#include "reddnd/generation/bindings.h"
#include "reddnd/generation/generation.h"
#include "reddnd/policy/request.h"
#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/events.h"
#include "reddnd/server/live.h"
#include "reddnd/session/queues.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* FREE_PARTS: each session may ask so many times for a part of its description, whatever the rate of its
 * source: enough to get one once. How many sessions a client can have is limited elsewhere */
enum { FREE_PARTS = 32, ACCURACY_US = 10000, MS = 1000 };

/* An address that does not resolve takes a thread for a second. A tenant has jobs of two kinds, for addresses
 * that are known and for others */
static const struct worker_limits resolver_limits = {.threads = 12, .running = 3, .pending = CONNECTS_MAX};

/* A client that is admitted and has no session yet */
struct connect {
	struct worker_job job;
	struct dispatch *d;
	struct session_client client;
	struct admit_result admitted;
	uint8_t gid[16];
	bool known; /* its address answered before */
	bool held;  /* until a table that was replaced is opened again */
	struct reddn_wire_req req;
	sd_event_source *timer;
	bool resolved;
	bool busy;            /* a worker has the job */
	atomic_bool answered; /* to be freed when the job is done */
	int error;            /* of the job */
	TAILQ_ENTRY(connect) link;
};

static void connect_wait(struct dispatch *d, const struct session_client *client,
	const struct admit_result *admitted, const void *data);
static void connect_resolve(struct connect *v);
static void connect_register(struct connect *v);
static void connect_begin(struct connect *v);
static void connect_judge_again(struct connect *v);

/* ---- request: refused ---- */

static void client_reject(const struct session_client *c, const struct reddn_wire_rej *rej)
{
	if (rnic_conn_reject(c->conn, rej, sizeof(*rej)) < 0)
		log_debug("client %s has gone before it was answered", c->peer);
}

static struct source client_source(const struct dispatch *d, const struct session_client *c)
{
	return source_of(c->address, d->shared->record->enforcement.source_bits);
}

static void client_refuse(struct dispatch *d, const struct session_client *c,
	const struct admit_result *admitted, const struct reddn_wire_rej *rej)
{
	const struct source of = client_source(d, c);
	uint64_t now = clock_us();

	accounting_refused(&d->shared->accounting, admitted->tenant);
	if (refusals_allow(&d->shared->refusals, &of, now)) {
		report_refused(d->shared->events, c, admitted->tenant ? admitted->tenant->name : "",
			admitted->request.offload, rej->text);
	} else {
		d->shared->accounting.unlisted++;
		refusals_count(&d->shared->refusals, &of, rej->text, now);
	}
	client_reject(c, rej);
	shared_report_unlisted(d->shared);
}

/* Its tenant has been charged */
static void client_refuse_admitted(struct dispatch *d, const struct session_client *c,
	const struct admit_result *admitted, const struct reddn_wire_rej *rej)
{
	tenant_refund(admitted->tenant, &admitted->charge);
	client_refuse(d, c, admitted, rej);
}

/* ---- request: a question ---- */

/* The session that goes on and is that of the client, its reply slots and their key, or NULL */
static struct session *question_session(
	const struct dispatch *d, const struct session_client *c, const struct end_reason_query *query)
{
	struct session *s = live_find(d, query->session);

	return s && s->queues.env.slot_addr == query->slot_addr &&
			       s->queues.env.slot_rkey == query->slot_rkey &&
			       memcmp(c->address, s->client.address, sizeof(c->address)) == 0
		       ? s
		       : NULL;
}

static void describe(const struct session *s, const struct question *q, struct reddn_wire_rej *rej)
{
	if (s && s->offload->description)
		question_describe(s->offload->description, q->from, rej);
	else
		request_refuse(rej, REDDN_REJ_UNKNOWN, 0,
			s ? "session %" PRIu64 " goes on with a program that this daemon does not have"
			  : "session %" PRIu64 " does not go on, or is not this client's",
			q->of.session);
}

/* It requests no session, and that is no event */
static void question_answer(struct dispatch *d, const struct session_client *c, const struct question *q)
{
	const struct source of = client_source(d, c);
	struct session *s = question_session(d, c, &q->of);
	bool allowed = (q->describe && s && s->described++ < FREE_PARTS) ||
		       refusals_allow(&d->shared->refusals, &of, clock_us());
	struct reddn_wire_rej rej;

	if (!allowed)
		request_refuse(&rej, q->describe ? REDDN_REJ_RESOURCES : REDDN_REJ_UNKNOWN, 0,
			"too many questions; ask again later");
	else if (q->describe)
		describe(s, q, &rej);
	else if (s)
		request_refuse(&rej, REDDN_REJ_NOT_ENDED, 0, "session %" PRIu64 " goes on", q->of.session);
	else
		end_reasons_answer(&d->shared->record->end_reasons, c->address, &q->of, &rej);
	client_reject(c, &rej);
}

/* ---- request: judged ---- */

static bool is_infiniband(const struct dispatch *d)
{
	return rnic_device_caps(d->dev)->infiniband;
}

/* On RoCE a client is the GID that answers go to. What its request gives as its address may be another's, who
 * must not be limited or known by that */
static struct session_client client_of(const struct dispatch *d, struct rnic_conn *conn)
{
	struct session_client c = {.conn = conn, .peer = rnic_conn_peer(conn)};

	if (is_infiniband(d))
		rnic_conn_address(conn, c.address);
	else
		rnic_conn_gid(conn, c.address);
	return c;
}

/* From the connection, as its queue pairs will be connected: a token shows that the client made the request
 * for these ends */
static struct token_ends ends_of(const struct session_client *c)
{
	struct token_ends ends = {.client_qpn = rnic_conn_client_qpn(c->conn)};

	rnic_conn_address(c->conn, ends.client);
	rnic_conn_gid(c->conn, ends.gid);
	rnic_conn_server(c->conn, ends.server, &ends.port);
	return ends;
}

/*
 * The address is in the private data of the request, which the client's kernel writes, or whoever sends
 * packets in its place. On RoCE answers go to a GID that is an IP address (RoCEv2, annex A17; Linux:
 * rdma_ip2gid): one who gives the address of another is not answered there, and is refused here. On
 * InfiniBand a GID is no IP address.
 */
static bool has_its_address(const struct token_ends *ends)
{
	return memcmp(ends->gid, ends->client, sizeof(ends->gid)) == 0;
}

/* Where the connection manager knows the GID that answers go to: that of iWARP does not (Linux core/iwcm.c,
 * iw_cm_init_qp_attr) */
static bool has_gid(const struct token_ends *ends)
{
	static const uint8_t none[sizeof(ends->gid)];

	return memcmp(ends->gid, none, sizeof(none)) != 0;
}

/* The same of the address that it connects to, which the kernel compares only with that of a listener. A
 * token for another server would be good here if a request could name any. */
static bool has_our_address(
	const struct dispatch *d, const struct session_client *c, const struct admit_from *from)
{
	return rnic_conn_came_to(c->conn, d->dev, from->ends->server, from->now_us);
}

/* False, with the reason in @rej: the client came in on another device, gives an address of another, or is
 * banned */
static bool may_ask(struct dispatch *d, const struct session_client *c, const struct admit_from *from,
	struct reddn_wire_rej *rej)
{
	const char *ours = rnic_device_name(d->dev), *its = rnic_conn_device(c->conn);

	if (strcmp(its, ours) != 0)
		return request_refuse(rej, REDDN_REJ_RESOURCES, 0,
			"the request came in on %s; this server uses %s", its, ours);
	if (rnic_device_is_lost(d->dev))
		return request_refuse(rej, REDDN_REJ_RESOURCES, 0, "the server has lost its device %s", ours);
	if (!from->untrusted && !has_gid(from->ends))
		return request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the server cannot verify the address of the client: the connection has no GID, as "
			"on iWARP");
	if (!from->untrusted && !has_its_address(from->ends))
		return request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the address in the request is not the one that the client's packets come from");
	if (!from->untrusted && !has_our_address(d, c, from))
		return request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the server's address in the request is not the one that the client's packets go to");
	return enforcement_admits(&d->shared->record->enforcement, c->address, from->now_us, rej);
}

/* The session that takes the client as a further connection; or NULL. A session that this daemon only watches
 * has no program to begin queues with. */
static struct session *find_joined(
	const struct dispatch *d, const struct session_client *c, const struct request *request)
{
	struct session *s = request->joins ? live_find(d, request->session) : NULL;

	if (!s || !session_is_first(s) || s->secret != request->secret || s->foreign ||
		memcmp(c->address, s->client.address, sizeof(s->client.address)) != 0 ||
		s->connections == REDDN_WIRE_CONNECTIONS)
		return NULL;
	return s;
}

/* True: the tenant has been charged. False: @rej has the reason */
static bool admit(struct dispatch *d, const struct session_client *c, const void *data, size_t size,
	struct admit_result *admitted, struct reddn_wire_rej *rej)
{
	const struct token_ends ends = ends_of(c);
	struct admit_from from = {.req = data,
		.ends = &ends,
		.device = d->parts.device,
		.untrusted = is_infiniband(d),
		.now = (uint64_t)time(NULL),
		.now_us = clock_us()};
	const struct session *joined;

	if (!may_ask(d, c, &from, rej) || !request_parse(data, size, &admitted->request, rej))
		return false;
	joined = find_joined(d, c, &admitted->request);
	if (joined) {
		from.offload = joined->offload;
		from.tenant = joined->tenant;
	}
	return admit_client(d->generation, &from, admitted, rej);
}

/* The client asked for the size of reply slots, or a larger depth would do, and @rej has it. No event either,
 * at the rate of questions */
static bool is_told(struct dispatch *d, const struct session_client *c, const struct admit_result *admitted,
	const struct reddn_wire_rej *rej)
{
	const struct source of = client_source(d, c);
	const bool size = admitted->request.guessed && rej->reason == REDDN_REJ_SLOT,
		   depth = rej->reason == REDDN_REJ_DEPTH && be32toh(rej->detail) > admitted->request.depth;

	return admitted->offload && (size || depth) && refusals_allow(&d->shared->refusals, &of, clock_us());
}

/* True: the tenant has been charged. False: the client has been refused */
static bool judge(struct dispatch *d, const struct session_client *c, const void *data, size_t size,
	struct admit_result *admitted)
{
	struct reddn_wire_rej rej;

	if (admit(d, c, data, size, admitted, &rej))
		return true;
	if (is_told(d, c, admitted, &rej)) {
		log_debug("client %s: %s", c->peer, rej.text);
		client_reject(c, &rej);
	} else {
		client_refuse(d, c, admitted, &rej);
	}
	return false;
}

static void on_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct dispatch *d = arg;
	const struct session_client client = client_of(d, conn);
	struct admit_result admitted = {0};
	struct question question;

	if (question_parse(data, size, &question)) {
		question_answer(d, &client, &question);
	} else if (judge(d, &client, data, size, &admitted)) {
		connect_wait(d, &client, &admitted, data);
		return;
	}
	rnic_conn_free(conn);
}

/* ---- a client that waits ---- */

static void connect_free(struct connect *v)
{
	TAILQ_REMOVE(&v->d->connects.all, v, link);
	sd_event_source_disable_unref(v->timer);
	if (v->client.conn)
		rnic_conn_free(v->client.conn);
	generation_leave(v->admitted.offload);
	free(v);
}

/* A job that a worker has begun cannot be taken back */
static void connect_forget(struct connect *v)
{
	v->answered = true;
	v->timer = sd_event_source_disable_unref(v->timer);
	if (!v->busy)
		connect_free(v);
}

static void connect_refuse(struct connect *v, const struct reddn_wire_rej *rej)
{
	client_refuse_admitted(v->d, &v->client, &v->admitted, rej);
	connect_forget(v);
}

static void connect_refuse_shutdown(struct connect *v)
{
	struct reddn_wire_rej rej;

	request_refuse(&rej, REDDN_REJ_SHUTDOWN, 0, "the daemon stops");
	connect_refuse(v, &rej);
}

static void too_many(const struct admit_result *admitted, struct reddn_wire_rej *rej)
{
	request_refuse(rej, REDDN_REJ_RESOURCES, 0, "too many clients of tenant %s connect at once",
		admitted->tenant->name);
}

static int on_late(sd_event_source *source, uint64_t usec, void *arg)
{
	struct connect *v = arg;
	struct reddn_wire_rej rej;

	(void)source;
	(void)usec;
	request_refuse(&rej, REDDN_REJ_RESOURCES, 0,
		v->held       ? "the table was replaced, and is not opened again within %" PRIu64 " ms"
		: v->resolved ? "the server registers regions for longer than %" PRIu64 " ms"
			      : "the address of the client was not resolved within %" PRIu64 " ms",
		v->d->connects.timeout_us / MS);
	connect_refuse(v, &rej);
	return 0;
}

/* Those of the tenant of @like that wait for the same: a table, or a worker */
static unsigned count_waiting(const struct connects *c, const struct connect *like)
{
	const struct connect *v;
	unsigned n = 0;

	TAILQ_FOREACH (v, &c->all, link)
		n += v->admitted.tenant == like->admitted.tenant && v->held == like->held &&
		     (v->held || v->known == like->known);
	return n;
}

/* It is being opened again. Not that of an older session, which gets another connection */
static bool is_awaited(const struct dispatch *d, const struct offload *o)
{
	return o->generation == d->generation && offload_is_retired(o) && d->retired(d->arg);
}

/* NULL: no memory, or there are too many */
static struct connect *connect_new(struct dispatch *d, const struct session_client *client,
	const struct admit_result *admitted, const void *data)
{
	struct connect *v = calloc(1, sizeof(*v));
	struct connects *c = &d->connects;

	if (!v)
		return NULL;
	v->d = d;
	v->client = *client;
	v->admitted = *admitted;
	memcpy(&v->req, data, sizeof(v->req));
	v->held = is_awaited(d, admitted->offload);
	rnic_conn_gid(client->conn, v->gid);
	v->known = reachability_is_known(&c->reachability, v->gid, clock_us());
	if (count_waiting(c, v) >= CONNECTS_MAX ||
		sd_event_add_time_relative(
			c->event, &v->timer, CLOCK_MONOTONIC, c->timeout_us, ACCURACY_US, on_late, v) < 0) {
		free(v);
		return NULL;
	}
	generation_use(admitted->offload);
	TAILQ_INSERT_TAIL(&c->all, v, link);
	return v;
}

/* If there are too many, it is refused */
static void connect_wait(struct dispatch *d, const struct session_client *client,
	const struct admit_result *admitted, const void *data)
{
	struct connect *v = connect_new(d, client, admitted, data);
	struct reddn_wire_rej rej;

	if (v) {
		if (!v->held)
			connect_resolve(v);
		return;
	}
	too_many(admitted, &rej);
	client_refuse_admitted(d, client, admitted, &rej);
	rnic_conn_free(client->conn);
}

/* The worker calls @run, and then the event loop @done */
static void connect_submit(struct connect *v, struct worker *w, void (*run)(struct worker_job *job),
	void (*done)(struct worker_job *job))
{
	struct reddn_wire_rej rej;

	v->job = (struct worker_job){.key = v->admitted.tenant,
		.kind = w == v->d->connects.resolver && v->known,
		.run = run,
		.done = done};
	v->busy = true;
	if (worker_submit(w, &v->job) == 0)
		return;
	v->busy = false;
	too_many(&v->admitted, &rej);
	connect_refuse(v, &rej);
}

/* The job is done. False: the client needs nothing more */
static bool connect_goes_on(struct connect *v)
{
	v->busy = false;
	if (v->answered)
		connect_free(v);
	else if (v->job.canceled || v->d->connects.ending)
		connect_refuse_shutdown(v);
	else
		return true;
	return false;
}

/* ---- address ---- */

static void refuse_unreachable(struct connect *v, const char *why)
{
	struct reddn_wire_rej rej;

	request_refuse(
		&rej, REDDN_REJ_INTERNAL, 0, "the network does not know the address of the client: %s", why);
	connect_refuse(v, &rej);
}

/* A client that was refused while it waited for a thread takes none any more */
static void resolve(struct worker_job *job)
{
	struct connect *v = (struct connect *)job;

	v->error = v->answered ? -ECANCELED : rnic_conn_resolve(v->client.conn, v->d->dev);
}

static void note_answer(struct connect *v)
{
	struct connects *c = &v->d->connects;

	if (v->error == 0) {
		reachability_answered(&c->reachability, v->gid, clock_us());
		rnic_conn_remember(v->client.conn, &c->memory, clock_us());
	} else if (v->error != -ECANCELED) {
		reachability_failed(&c->reachability, v->gid, clock_us());
	}
}

/* Others with the GID of @v waited for what it learnt. The first of them may make others wait again. */
static void wake_others(const struct connect *v)
{
	struct connect *o, *next;

	for (o = TAILQ_FIRST(&v->d->connects.all); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o != v && !o->busy && !o->held && !o->answered &&
			memcmp(o->gid, v->gid, sizeof(v->gid)) == 0)
			connect_resolve(o);
	}
}

static void on_resolved(struct worker_job *job)
{
	struct connect *v = (struct connect *)job;

	v->resolved = !job->canceled && v->error == 0;
	v->busy = false; /* those who are woken do not wait for it */
	if (!job->canceled)
		note_answer(v);
	wake_others(v);
	if (!connect_goes_on(v))
		return;
	if (v->resolved)
		connect_register(v);
	else
		refuse_unreachable(v, strerror(-v->error));
}

static bool is_being_resolved(const struct connects *c, const uint8_t gid[16])
{
	const struct connect *o;

	TAILQ_FOREACH (o, &c->all, link)
		if (o->busy && !o->resolved && memcmp(o->gid, gid, 16) == 0)
			return true;
	return false;
}

static void connect_resolve(struct connect *v)
{
	struct connects *c = &v->d->connects;

	v->resolved = rnic_conn_recall(v->client.conn, &c->memory, clock_us());
	if (c->ending)
		connect_refuse_shutdown(v);
	else if (v->resolved)
		connect_register(v);
	else if (reachability_is_silent(&c->reachability, v->gid, clock_us()))
		refuse_unreachable(v, "it did not answer some seconds ago");
	else if (!is_being_resolved(c, v->gid))
		connect_submit(v, c->resolver, resolve, on_resolved);
}

/* ---- regions ---- */

static struct rnic_pd *pd_of(const struct connect *v)
{
	return v->admitted.tenant->domain[v->d->parts.device].pd;
}

static void register_regions(struct worker_job *job)
{
	struct connect *v = (struct connect *)job;
	struct chain_env env;

	v->error = bindings_register(v->admitted.offload, pd_of(v), &env);
}

static void on_registered(struct worker_job *job)
{
	struct connect *v = (struct connect *)job;
	struct reddn_wire_rej rej;

	if (!connect_goes_on(v))
		return;
	if (v->error == 0) {
		connect_register(v);
		return;
	}
	request_refuse(&rej, REDDN_REJ_INTERNAL, 0,
		"the server could not register the regions of the offload: %s", strerror(-v->error));
	connect_refuse(v, &rej);
}

/* They may have gone again when the worker was done, and the store may have been replaced */
static void connect_register(struct connect *v)
{
	if (generation_replaces(v->d->generation, v->admitted.offload))
		connect_judge_again(v);
	else if (bindings_are_registered(v->admitted.offload, pd_of(v)))
		connect_begin(v);
	else
		connect_submit(v, v->d->connects.registrar, register_regions, on_registered);
}

/* ---- session ---- */

/* NULL, and @rej: there is none */
static struct session *make_session(struct dispatch *d, const struct connect *v, struct reddn_wire_rej *rej)
{
	const struct request *request = &v->admitted.request;
	struct session *s = NULL, *first = find_joined(d, &v->client, request);
	uint64_t *last = &d->shared->last_session;
	int r;

	if (request->joins && !first) {
		request_refuse(rej, REDDN_REJ_UNKNOWN, 0, "session %" PRIu64 " has ended", request->session);
		return NULL;
	}
	if (!first)
		ledger_set_last_session(rnic_device_ledger(d->dev), ++*last);
	r = session_new(&s, *last, first, &d->parts, &v->admitted, &v->client, clock_us());
	/* A store that evicts makes room for a client that asks again */
	if (r == -EAGAIN)
		stores_wake(&d->shared->stores);
	if (r == -ENOSPC || r == -ENOMEM)
		request_refuse(rej, REDDN_REJ_RESOURCES, 0, "the server has no memory left for queues");
	else if (r == -EAGAIN)
		request_refuse(rej, REDDN_REJ_RESOURCES, 0,
			"the store has no room for what another client puts; one of a smaller depth takes "
			"less");
	else if (r == -ECONNABORTED)
		request_refuse(rej, REDDN_REJ_INTERNAL, 0, "the client gave up before it was answered");
	else if (r < 0)
		request_refuse(
			rej, REDDN_REJ_INTERNAL, 0, "the server could not make the queues: %s", strerror(-r));
	return s;
}

static void on_began(struct dispatch *d, struct session *s)
{
	struct action action;

	accounting_began(s);
	report_began(d->shared->events, s);
	enforcement_begin(&d->shared->record->enforcement, s->client.address, clock_us(), &action);
	actions_take(d, s, &action);
}

static int answer(struct session *s)
{
	struct reddn_wire_rep rep;
	int r;

	session_describe(s, &rep);
	if (!session_queues_are_starting(s))
		ledger_accepted(s->slot);
	r = rnic_conn_accept(s->client.conn, s->id, s->queues.qpn, &rep, sizeof(rep));
	if (r == 0)
		session_note_connections(s->first);
	return r;
}

/* NULL, or why the session cannot be used. The master QP goes with the daemon, and with it what it has not
 * yet done: the next one could only look at a session that never begins, so it is accepted after that */
static const char *accept_client(struct dispatch *d, struct session *s)
{
	if (live_begin(d, s) < 0 || answer(s) < 0)
		return "the client could not be answered";
	if (session_queues_started(s) < 0)
		return "the NIC did not begin with its queues";
	ledger_accepted(s->slot);
	session_set_state(s, SESSION_ACCEPTED);
	return NULL;
}

static void connect_begin(struct connect *v)
{
	struct dispatch *d = v->d;
	struct reddn_wire_rej rej;
	struct session *s = make_session(d, v, &rej);
	const char *broken;

	if (!s) {
		connect_refuse(v, &rej);
		return;
	}
	v->client.conn = NULL;
	connect_forget(v);
	/* Making the queues takes milliseconds, which are not the client's */
	s->since = clock_us();
	live_add(d, s);
	if (session_is_first(s))
		on_began(d, s);
	else
		log_at(LOG_INFO, session_number(s), "has %u connections", s->first->connections);
	pacer_post(&d->shared->pacer, s);
	broken = accept_client(d, s);
	if (!broken)
		return;
	actions_end(d, s, REDDN_WIRE_END_FAILED, broken);
	collect_reap(d);
}

/* ---- established, gone ---- */

static void on_established(void *arg, uint64_t number)
{
	struct dispatch *d = arg;
	struct session *s = live_find(d, number);

	if (!s || s->state != SESSION_ACCEPTED)
		return;
	ledger_established(s->slot);
	session_set_state(s, SESSION_ESTABLISHED);
	timers_set(&d->timers, s);
	log_at(LOG_DEBUG, session_number(s), "connected");
}

static void on_gone(void *arg, uint64_t number, const char *why)
{
	struct dispatch *d = arg;
	struct session *s;

	collect_drain(d);
	s = live_find(d, number);
	if (s)
		actions_left(d, s, why);
	collect_round(d);
}

const struct rnic_cm_ops connect_cm_ops = {
	.request = on_request, .established = on_established, .gone = on_gone};

/* ---- all of a device ---- */

int connects_init(struct connects *c, sd_event *event, struct worker *registrar)
{
	TAILQ_INIT(&c->all);
	c->event = event;
	c->registrar = registrar;
	return worker_new(&c->resolver, event, "reddnd-resolve", &resolver_limits);
}

/* What it was charged is given back. It has waited since its first request came */
static void connect_judge_again(struct connect *v)
{
	const struct offload *before = v->admitted.offload;
	struct dispatch *d = v->d;

	tenant_uncharge(v->admitted.tenant, &v->admitted.charge);
	v->admitted = (struct admit_result){0};
	if (judge(d, &v->client, &v->req, sizeof(v->req), &v->admitted)) {
		generation_use(v->admitted.offload);
		generation_leave(before);
		v->held = is_awaited(d, v->admitted.offload);
		if (!v->held)
			connect_resolve(v);
	} else {
		v->admitted.offload = before;
		connect_forget(v);
	}
}

void connects_go_on(struct dispatch *d)
{
	struct connect *v, *next, *last = TAILQ_LAST(&d->connects.all, connect_list);
	bool more = last;

	/* Those behind the last one have begun to wait meanwhile */
	for (v = TAILQ_FIRST(&d->connects.all); v && more; v = next) {
		next = TAILQ_NEXT(v, link);
		more = v != last;
		if (v->held && !v->answered)
			connect_judge_again(v);
	}
}

void connects_end(struct connects *c)
{
	struct connect *v, *next;

	c->ending = true;
	if (c->resolver)
		worker_free(c->resolver);
	c->resolver = NULL;
	/* Those whose regions are being registered are freed when that is done */
	for (v = TAILQ_FIRST(&c->all); v; v = next) {
		next = TAILQ_NEXT(v, link);
		if (!v->answered)
			connect_refuse_shutdown(v);
	}
}
