/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/accept.h"

#include "reddnd/server/report.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* Each session may ask so many times for a part of its description, whatever the rate of its source: enough
 * to get one once. How many sessions a client can have is limited elsewhere */
enum { FREE_PARTS = 32 };

static bool is_infiniband(const struct acceptor *a)
{
	return rnic_device_caps(a->parts.dev)->infiniband;
}

/* On RoCE a client is the GID that answers go to. What its request gives as its address may be another's, who
 * must not be limited or known by that */
static struct session_client client_of(const struct acceptor *a, struct rnic_conn *conn)
{
	struct session_client c = {.conn = conn, .peer = rnic_conn_peer(conn)};

	if (is_infiniband(a))
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

static void reject(const struct session_client *c, const struct reddn_wire_rej *rej)
{
	if (rnic_conn_reject(c->conn, rej, sizeof(*rej)) < 0)
		log_debug("client %s has gone before it was answered", c->peer);
}

/* The session that goes on and is that of the client, its reply slots and their key, or NULL */
static struct session *served(
	const struct acceptor *a, const struct session_client *c, const struct end_reason_query *query)
{
	struct session *s;

	HASH_FIND(by_id, *a->sessions, &query->session, sizeof(query->session), s);
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
static void answer_question(
	const struct acceptor *a, const struct session_client *c, const struct question *q, uint64_t now)
{
	const struct source of = source_of(c->address, a->enforcement->source_bits);
	struct session *s = served(a, c, &q->of);
	bool allowed =
		(q->describe && s && s->described++ < FREE_PARTS) || refusals_allow(a->refusals, &of, now);
	struct reddn_wire_rej rej;

	if (!allowed)
		request_refuse(&rej, q->describe ? REDDN_REJ_RESOURCES : REDDN_REJ_UNKNOWN, 0,
			"too many questions; ask again later");
	else if (q->describe)
		describe(s, q, &rej);
	else if (s)
		request_refuse(&rej, REDDN_REJ_NOT_ENDED, 0, "session %" PRIu64 " goes on", q->of.session);
	else
		end_reasons_answer(a->end_reasons, c->address, &q->of, &rej);
	reject(c, &rej);
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
	const struct acceptor *a, const struct session_client *c, const struct admit_from *from)
{
	return rnic_conn_came_to(c->conn, a->parts.dev, from->ends->server, from->now_us);
}

/* The session that takes the client as a further connection; or NULL. A session that this daemon only watches
 * has no program to begin queues with. */
static struct session *find_joined(
	const struct acceptor *a, const uint8_t address[16], uint64_t number, uint64_t secret)
{
	struct session *s;

	HASH_FIND(by_id, *a->sessions, &number, sizeof(number), s);
	if (!s || !session_is_first(s) || s->secret != secret || s->foreign ||
		memcmp(address, s->client.address, sizeof(s->client.address)) != 0 ||
		s->connections == REDDN_WIRE_CONNECTIONS)
		return NULL;
	return s;
}

/* False, with the reason in @rej: the client came in on another device, gives an address of another, or is
 * banned */
static bool may_ask(const struct acceptor *a, const struct session_client *c, const struct admit_from *from,
	struct reddn_wire_rej *rej)
{
	const char *ours = rnic_device_name(a->parts.dev), *its = rnic_conn_device(c->conn);

	if (strcmp(its, ours) != 0) {
		request_refuse(rej, REDDN_REJ_RESOURCES, 0, "the request came in on %s; this server uses %s",
			its, ours);
		return false;
	}
	if (rnic_device_is_lost(a->parts.dev)) {
		request_refuse(rej, REDDN_REJ_RESOURCES, 0, "the server has lost its device %s", ours);
		return false;
	}
	if (!from->untrusted && !has_gid(from->ends)) {
		request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the server cannot verify the address of the client: the connection has no GID, as "
			"on iWARP");
		return false;
	}
	if (!from->untrusted && !has_its_address(from->ends)) {
		request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the address in the request is not the one that the client's packets come from");
		return false;
	}
	if (!from->untrusted && !has_our_address(a, c, from)) {
		request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the server's address in the request is not the one that the client's packets go to");
		return false;
	}
	return enforcement_admits(a->enforcement, c->address, from->now_us, rej);
}

/* False: the tenant may not have what is asked for. True: the tenant has been charged. */
static bool admit(const struct acceptor *a, const struct session_client *c, struct admit_from *from,
	struct admit_result *result, struct reddn_wire_rej *rej)
{
	const struct request *request = &result->request;
	const struct session *joined =
		request->joins ? find_joined(a, c->address, request->session, request->secret) : NULL;

	if (joined) {
		from->offload = joined->offload;
		from->tenant = joined->tenant;
	}
	return admit_client(a->generation, from, result, rej);
}

static void refuse(struct acceptor *a, const struct session_client *c, const struct admit_result *admitted,
	uint64_t now, const struct reddn_wire_rej *rej)
{
	const struct source of = source_of(c->address, a->enforcement->source_bits);

	accounting_refused(a->accounting, admitted->tenant);
	if (refusals_allow(a->refusals, &of, now)) {
		report_refused(a->events, c, admitted->tenant ? admitted->tenant->name : "",
			admitted->request.offload, rej->text);
	} else {
		a->accounting->unlisted++;
		refusals_count(a->refusals, &of, rej->text, now);
	}
	reject(c, rej);
}

void accept_refuse(struct acceptor *a, const struct session_client *c, const struct admit_result *admitted,
	uint64_t now, const struct reddn_wire_rej *rej)
{
	tenant_refund(admitted->tenant, &admitted->charge);
	refuse(a, c, admitted, now, rej);
}

/* The client asked for the size of reply slots, and @rej has it */
static bool is_told_size(const struct admit_result *admitted, const struct reddn_wire_rej *rej)
{
	return admitted->offload && admitted->request.guessed && rej->reason == REDDN_REJ_SLOT;
}

/* No event either, at the rate of questions */
static void tell_size(struct acceptor *a, const struct session_client *c, const struct admit_result *admitted,
	uint64_t now, const struct reddn_wire_rej *rej)
{
	const struct source of = source_of(c->address, a->enforcement->source_bits);

	if (!refusals_allow(a->refusals, &of, now)) {
		refuse(a, c, admitted, now, rej);
		return;
	}
	log_debug("client %s: %s", c->peer, rej->text);
	reject(c, rej);
}

bool accept_request(struct acceptor *a, struct rnic_conn *conn, const void *data, size_t size, uint64_t now,
	struct session_client *client, struct admit_result *admitted)
{
	struct question question;
	struct reddn_wire_rej rej;
	struct token_ends ends;
	struct admit_from from;

	*client = client_of(a, conn);
	*admitted = (struct admit_result){0};
	if (question_parse(data, size, &question)) {
		answer_question(a, client, &question, now);
		return false;
	}
	ends = ends_of(client);
	from = (struct admit_from){.req = data,
		.ends = &ends,
		.device = a->parts.device,
		.untrusted = is_infiniband(a),
		.now = (uint64_t)time(NULL),
		.now_us = now};
	if (may_ask(a, client, &from, &rej) && request_parse(data, size, &admitted->request, &rej) &&
		admit(a, client, &from, admitted, &rej))
		return true;
	if (is_told_size(admitted, &rej))
		tell_size(a, client, admitted, now, &rej);
	else
		refuse(a, client, admitted, now, &rej);
	return false;
}

struct session *accept_begin(struct acceptor *a, const struct session_client *client,
	const struct admit_result *admitted, uint64_t now)
{
	const struct request *request = &admitted->request;
	struct session *s = NULL, *first = NULL;
	struct reddn_wire_rej rej;
	int r;

	if (request->joins)
		first = find_joined(a, client->address, request->session, request->secret);
	if (request->joins && !first) {
		request_refuse(&rej, REDDN_REJ_UNKNOWN, 0, "session %" PRIu64 " has ended", request->session);
		accept_refuse(a, client, admitted, now, &rej);
		return NULL;
	}
	if (!first)
		ledger_set_last_session(rnic_device_ledger(a->parts.dev), ++*a->last_id);
	r = session_new(&s, *a->last_id, first, &a->parts, admitted, client, now);
	if (r == 0)
		return s;
	if (r == -ENOSPC || r == -ENOMEM)
		request_refuse(&rej, REDDN_REJ_RESOURCES, 0, "the server has no memory left for queues");
	else
		request_refuse(&rej, REDDN_REJ_INTERNAL, 0, "the server could not make the queues: %s",
			strerror(-r));
	accept_refuse(a, client, admitted, now, &rej);
	return NULL;
}

int accept_answer(struct session *s)
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

/* The master QP goes with the daemon, and with it what it has not yet done: the next one could only look at a
 * session that never begins */
int accept_begun(struct session *s)
{
	int r = session_queues_started(s);

	if (r < 0)
		return r;
	ledger_accepted(s->slot);
	session_set_state(s, SESSION_ACCEPTED);
	return 0;
}
