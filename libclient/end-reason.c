/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/client-impl.h"
#include "libclient/public.h"
#include "protocol/wire.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A client may know of the end before the server does: its NIC is told first. So long it asks again */
enum { PATIENCE_MS = 1000, PAUSE_MS = 10 };

_Static_assert((int)REDDN_END_FAILED == (int)REDDN_WIRE_END_FAILED, "as on the wire");
_Static_assert((int)REDDN_END_CLIENT == (int)REDDN_WIRE_END_CLIENT, "as on the wire");
_Static_assert((int)REDDN_END_IDLE == (int)REDDN_WIRE_END_IDLE, "as on the wire");

/* One question */
struct question {
	struct reddn *c;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	uint64_t deadline; /* ms */
	struct reddn_wire_rej rej;
};

static void questionp(struct question *q)
{
	if (q->id && q->id->qp)
		rdma_destroy_qp(q->id);
	if (q->id)
		rdma_destroy_id(q->id);
	if (q->events)
		rdma_destroy_event_channel(q->events);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int left_ms(const struct question *q)
{
	uint64_t now = now_ms();

	return now < q->deadline ? (int)(q->deadline - now) : 0;
}

static int take(struct question *q, const struct rdma_cm_event *ev, enum rdma_cm_event_type expected)
{
	const struct rdma_conn_param *p = &ev->param.conn;

	if (ev->event != expected)
		return ev->event == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : -EHOSTUNREACH;
	if (expected != RDMA_CM_EVENT_REJECTED)
		return 0;
	/* The kernel's own refusal, when nobody listens, has no words */
	if (!p->private_data || p->private_data_len < sizeof(q->rej))
		return -ECONNREFUSED;
	memcpy(&q->rej, p->private_data, sizeof(q->rej));
	q->rej.text[sizeof(q->rej.text) - 1] = '\0';
	return be32toh(q->rej.magic) == REDDN_WIRE_MAGIC ? 0 : -ECONNREFUSED;
}

static int await(struct question *q, enum rdma_cm_event_type expected)
{
	struct pollfd p = {.fd = q->events->fd, .events = POLLIN};
	struct rdma_cm_event *ev;
	int r;

	do {
		r = poll(&p, 1, left_ms(q));
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	if (rdma_get_cm_event(q->events, &ev) < 0)
		return -errno;
	r = take(q, ev, expected);
	rdma_ack_cm_event(ev);
	return r;
}

/* Both ends as they were, but for the client's port */
static int resolve(struct question *q)
{
	struct sockaddr_storage from = {0};
	const struct sockaddr *local = rdma_get_local_addr(q->c->id);
	int r;

	if (local->sa_family == AF_INET) {
		memcpy(&from, local, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&from)->sin_port = 0;
	} else {
		memcpy(&from, local, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)&from)->sin6_port = 0;
	}
	r = rdma_resolve_addr(q->id, (struct sockaddr *)&from, rdma_get_peer_addr(q->c->id), left_ms(q) + 1);
	if (r < 0)
		return -errno;
	r = await(q, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (r < 0)
		return r;
	return rdma_resolve_route(q->id, left_ms(q) + 1) < 0 ? -errno
							     : await(q, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int ask_once(struct question *out)
{
	__attribute__((cleanup(questionp))) struct question q = *out;
	struct reddn *c = q.c;
	/* Nothing is ever posted to it. But a request names a queue pair, and one whose number the server
	 * still knows is refused */
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct reddn_wire_end_query why = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = REDDN_REQ_END_REASON,
		.slot_addr = htobe64((uintptr_t)c->area),
		.slot_rkey = htobe32(c->mr->rkey),
		.session = htobe64(c->info.session)};
	struct rdma_conn_param param = {
		.private_data = &why, .private_data_len = sizeof(why), .retry_count = 7};
	int r;

	q.events = rdma_create_event_channel();
	if (!q.events || rdma_create_id(q.events, &q.id, NULL, RDMA_PS_TCP) < 0) {
		q.id = NULL;
		return -errno;
	}
	r = resolve(&q);
	if (r < 0)
		return r;
	if (rdma_create_qp(q.id, c->pd, &attr) < 0 || rdma_connect(q.id, &param) < 0)
		return -errno;
	r = await(&q, RDMA_CM_EVENT_REJECTED);
	out->rej = q.rej;
	return r;
}

static int answer(struct reddn *c, struct reddn_wire_rej *rej)
{
	size_t len = strlen(c->errmsg);
	uint32_t how = be32toh(rej->need);

	if (rej->reason != REDDN_REJ_ENDED || how > INT32_MAX)
		return REDDN_END_UNKNOWN;
	for (char *t = rej->text; *t; t++) /* it goes to terminals */
		*t = (unsigned char)*t < ' ' || *t == 0x7f ? '?' : *t;
	if (how != REDDN_END_CLIENT)
		snprintf(c->errmsg + len, sizeof(c->errmsg) - len,
			"; the server ended session %" PRIu64 ": %s", c->info.session, rej->text);
	return (int)how;
}

PUBLIC int reddn_end_reason(struct reddn *c)
{
	struct question q = {.c = c};
	uint64_t now = now_ms(), patience = now + PATIENCE_MS;
	int r;

	if (!c->broken)
		return -EINVAL;
	if (c->asked_why)
		return c->why;
	q.deadline = now + c->timeout_ms;
	for (;;) {
		r = ask_once(&q);
		if (r < 0 || q.rej.reason != REDDN_REJ_SERVED || now_ms() > patience || !left_ms(&q))
			break;
		poll(NULL, 0, PAUSE_MS);
	}
	c->asked_why = true;
	c->why = r < 0 ? r : answer(c, &q.rej);
	return c->why;
}
