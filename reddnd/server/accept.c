/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server-impl.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- who goes
 * ------------------------------------------------------------------------------------------------ */

static int level_of(enum reddn_wire_end how)
{
	switch (how) {
	case REDDN_WIRE_END_CLIENT:
	case REDDN_WIRE_END_SHUTDOWN:
	case REDDN_WIRE_END_IDLE:
		return LOG_INFO;
	case REDDN_WIRE_END_OPERATOR:
		return LOG_NOTICE;
	default: /* it failed */
		return LOG_WARNING;
	}
}

void door_end(struct server *sv, struct session *s, enum reddn_wire_end how, const char *why)
{
	const struct end_reason_query of = {
		.session = s->id, .slot_addr = s->queues.env.slot_addr, .slot_rkey = s->queues.env.slot_rkey};
	int level = level_of(how);

	if (s->ended)
		return;
	rounds_count(sv, s);
	s->offload->stats->sessions--;
	if (level == LOG_WARNING) {
		sv->failed++;
		s->offload->stats->failed++;
		s->tenant->failed++;
	}
	pace_forget(&sv->pacer, s);
	upkeep_end(s);
	watch_end(sv, s);
	warden_ended(&sv->warden, s, level, why);
	end_reasons_add(&sv->end_reasons, s->client.address, &of, how, why);
	session_end(s);
	HASH_DELETE(by_id, sv->by_id, s);
	HASH_DELETE(by_qpn, sv->by_qpn, s);
	if (s->finished)
		TAILQ_REMOVE(&sv->dirty, s, link);
	s->finished = false;
	TAILQ_INSERT_TAIL(&sv->ended, s, link);
}

/* ---- who comes
 * ----------------------------------------------------------------------------------------------- */

static void refuse(struct server *sv, struct rnic_conn *conn, const struct admit_result *a,
	const struct reddn_wire_rej *rej)
{
	sv->refused++;
	if (a->tenant)
		a->tenant->refused++;
	warden_refused(&sv->warden, rnic_conn_peer(conn), a->tenant ? a->tenant->name : "",
		a->request.offload, rej->text);
	if (rnic_conn_reject(conn, rej, sizeof(*rej)) < 0)
		log_debug("client %s has gone before it was refused", rnic_conn_peer(conn));
	rnic_conn_free(conn);
}

/* Whoever has no queue pair any more cannot be told; it asks. That is no request for a session, and no event.
 */
static void tell_why(struct server *sv, struct rnic_conn *conn, const struct end_reason_query *of)
{
	struct session *s = server_find(sv, of->session);
	struct reddn_wire_rej rej;
	uint8_t address[16];

	rnic_conn_address(conn, address);
	if (s && s->queues.env.slot_addr == of->slot_addr && s->queues.env.slot_rkey == of->slot_rkey &&
		memcmp(address, s->client.address, sizeof(address)) == 0)
		request_refuse(&rej, REDDN_REJ_NOT_ENDED, 0, "session %" PRIu64 " goes on", of->session);
	else
		end_reasons_answer(&sv->end_reasons, address, of, &rej);
	if (rnic_conn_reject(conn, &rej, sizeof(rej)) < 0)
		log_debug("client %s has gone before it was answered", rnic_conn_peer(conn));
	rnic_conn_free(conn);
}

static void cm_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct server *sv = arg;
	const struct session_parts parts = {.dev = sv->dev, .arena = sv->arena, .cq_pool = &sv->cq_pool};
	struct session_client client = {.conn = conn, .peer = rnic_conn_peer(conn)};
	const struct admit_from from = {.data = data,
		.size = size,
		.address = client.address,
		.now = (uint64_t)time(NULL),
		.now_us = clock_us()};
	struct reddn_wire_rej rej;
	struct reddn_wire_rep rep;
	struct end_reason_query of;
	struct admit_result a = {0};
	const struct ban *slow;
	struct session *s;
	char words[100];
	int r;

	if (end_reason_query_parse(data, size, &of)) {
		tell_why(sv, conn, &of);
		return;
	}
	rnic_conn_address(conn, client.address);
	if (strcmp(rnic_conn_device(conn), rnic_device_name(sv->dev)) != 0) {
		request_refuse(&rej, REDDN_REJ_RESOURCES, 0, "the request came in on %s; this server uses %s",
			rnic_conn_device(conn), rnic_device_name(sv->dev));
		refuse(sv, conn, &a, &rej);
		return;
	}
	if (!warden_lets_in(&sv->warden, rnic_conn_peer(conn), &rej) ||
		!admit_client(sv->generation, &from, &a, &rej)) {
		refuse(sv, conn, &a, &rej);
		return;
	}
	r = session_new(&s, ++sv->next_id, &parts, &a, &client, clock_us());
	if (r < 0) {
		tenant_refund(a.tenant, &a.charge);
		if (r == -ENOSPC || r == -ENOMEM)
			request_refuse(
				&rej, REDDN_REJ_RESOURCES, 0, "the server has no memory left for queues");
		else
			request_refuse(&rej, REDDN_REJ_INTERNAL, 0,
				"the server could not make the queues: %s", strerror(-r));
		refuse(sv, conn, &a, &rej);
		return;
	}
	HASH_ADD(by_id, sv->by_id, id, sizeof(s->id), s);
	HASH_ADD(by_qpn, sv->by_qpn, queues.qpn, sizeof(s->queues.qpn), s);
	s->tenant->accepted++;
	s->offload->stats->sessions++;
	snprintf(words, sizeof(words), "depth %u, %u instances, %" PRIu64 " bytes of queues", a.request.depth,
		s->queues.layout.slots, s->queues.layout.size);
	warden_began(&sv->warden, s, words);
	slow = warden_slows(&sv->warden, rnic_conn_peer(conn));
	if (slow)
		upkeep_throttle(sv, s, slow->rate, slow->until);
	pace_session(&sv->pacer, s);
	session_describe(s, &rep);
	r = upkeep_begin(sv, s);
	if (r >= 0)
		r = rnic_conn_accept(conn, &s->queues.qp[0], &rep, sizeof(rep));
	if (r < 0) {
		door_end(sv, s, REDDN_WIRE_END_FAILED, "the client could not be answered");
		rounds_reap(sv);
	}
}

static void cm_established(void *arg, struct rnic_conn *conn)
{
	struct session *s = rnic_conn_user(conn);

	(void)arg;
	upkeep_established(s);
	log_at(LOG_DEBUG, s->id, "connected");
}

static void cm_gone(void *arg, struct rnic_conn *conn, const char *why)
{
	struct server *sv = arg;
	struct session *s = rnic_conn_user(conn);

	rounds_drain(sv);
	door_end(sv, s, REDDN_WIRE_END_CLIENT, why);
	rounds_collect(sv);
}

const struct rnic_cm_ops door_ops = {.request = cm_request, .established = cm_established, .gone = cm_gone};
