/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/question.h"

#include "libclient/handshake.h"
#include "util/address.h"
#include "util/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* One query. */
struct query {
	struct reddn *c;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	uint64_t deadline; /* ms */
	struct reddn_wire_rej rej;
};

static void query_deinit(struct query *q)
{
	if (q->id && q->id->qp)
		rdma_destroy_qp(q->id);
	if (q->id)
		rdma_destroy_id(q->id);
	if (q->events)
		rdma_destroy_event_channel(q->events);
}

static int check_event(struct query *q, const struct rdma_cm_event *ev, enum rdma_cm_event_type expected)
{
	if (ev->event != expected)
		return ev->event == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : -EHOSTUNREACH;
	/* The kernel refuses without a text if no server listens. */
	if (expected == RDMA_CM_EVENT_REJECTED && !reddn_read_rej(&q->rej, &ev->param.conn))
		return -ECONNREFUSED;
	return 0;
}

static int await(struct query *q, enum rdma_cm_event_type expected)
{
	struct rdma_cm_event *ev;
	int r = reddn_next_event(q->events, q->deadline, &ev);

	if (r < 0)
		return r;
	r = check_event(q, ev, expected);
	rdma_ack_cm_event(ev);
	return r;
}

/* Between the addresses of the session, but from another port. */
static int resolve(struct query *q)
{
	struct rdma_cm_id *first = q->c->session.connection[0].id;
	struct sockaddr_storage from = address_any_port(rdma_get_local_addr(first));
	int r = rdma_resolve_addr(
		q->id, (struct sockaddr *)&from, rdma_get_peer_addr(first), reddn_time_left(q->deadline) + 1);

	if (r < 0)
		return -errno;
	r = await(q, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (r < 0)
		return r;
	return rdma_resolve_route(q->id, reddn_time_left(q->deadline) + 1) < 0
		       ? -errno
		       : await(q, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int reddn_ask(struct reddn *c, uint8_t flag, uint32_t from, uint64_t deadline, struct reddn_wire_rej *rej)
{
	CLEANUP(query_deinit) struct query q = {.c = c, .deadline = deadline};
	/* Nothing is posted to it. But a REQ names a queue pair, and the server refuses a number that it
	 * still knows. */
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.send_cq = c->session.cq,
		.recv_cq = c->session.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct reddn_wire_query req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = flag,
		.slot_addr = htobe64((uintptr_t)c->session.area),
		.slot_rkey = htobe32(c->session.mr->rkey),
		.from = htobe32(from),
		.session = htobe64(c->session.info.session)};
	struct rdma_conn_param param = {
		.private_data = &req, .private_data_len = sizeof(req), .retry_count = 7};
	int r;

	q.events = rdma_create_event_channel();
	if (!q.events || rdma_create_id(q.events, &q.id, NULL, RDMA_PS_TCP) < 0) {
		q.id = NULL;
		return -errno;
	}
	r = resolve(&q);
	if (r < 0)
		return r;
	if (rdma_create_qp(q.id, c->session.pd, &attr) < 0 || rdma_connect(q.id, &param) < 0)
		return -errno;
	r = await(&q, RDMA_CM_EVENT_REJECTED);
	*rej = q.rej;
	return r;
}
