/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/question.h"

#include "libclient/handshake.h"
#include "util/address.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

/* One query. */
struct query {
	const struct reddn_subject *of;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	uint64_t deadline; /* ms */
	struct reddn_wire_rej rej;
};

struct reddn_subject reddn_subject_of(const struct reddn_session *s)
{
	struct rdma_cm_id *first = s->connection->id;
	struct reddn_subject of = {.session = s->info.session,
		.slot_addr = (uintptr_t)s->area,
		.slot_rkey = s->mr->rkey,
		.from = address_any_port(rdma_get_local_addr(first))};

	memcpy(&of.to, rdma_get_peer_addr(first), sizeof(of.to));
	return of;
}

int reddn_time_left(uint64_t deadline)
{
	uint64_t now = clock_ms();

	return now < deadline ? (int)(deadline - now) : 0;
}

static int next_event(struct rdma_event_channel *events, uint64_t deadline, struct rdma_cm_event **out)
{
	struct pollfd p = {.fd = events->fd, .events = POLLIN};
	int r;

	do {
		r = poll(&p, 1, reddn_time_left(deadline));
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	return rdma_get_cm_event(events, out) < 0 ? -errno : 0;
}

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
	int r = next_event(q->events, q->deadline, &ev);

	if (r < 0)
		return r;
	r = check_event(q, ev, expected);
	rdma_ack_cm_event(ev);
	return r;
}

/* Between the addresses of the session, but from another port. */
static int resolve(struct query *q)
{
	struct sockaddr_storage from = q->of->from, to = q->of->to;
	int r = rdma_resolve_addr(
		q->id, (struct sockaddr *)&from, (struct sockaddr *)&to, reddn_time_left(q->deadline) + 1);

	if (r < 0)
		return -errno;
	r = await(q, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (r < 0)
		return r;
	return rdma_resolve_route(q->id, reddn_time_left(q->deadline) + 1) < 0
		       ? -errno
		       : await(q, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int reddn_ask(const struct reddn_subject *of, uint8_t flag, uint32_t from, uint64_t deadline,
	struct reddn_wire_rej *rej)
{
	CLEANUP(query_deinit) struct query q = {.of = of, .deadline = deadline};
	/* Nothing is posted to it. But a REQ names a queue pair, and the server refuses a number that it
	 * still knows. CQs and PD are those of librdmacm. */
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct reddn_wire_query req = {.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.flags = flag,
		.slot_addr = htobe64(of->slot_addr),
		.slot_rkey = htobe32(of->slot_rkey),
		.from = htobe32(from),
		.session = htobe64(of->session)};
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
	if (rdma_create_qp(q.id, NULL, &attr) < 0 || rdma_connect(q.id, &param) < 0)
		return -errno;
	r = await(&q, RDMA_CM_EVENT_REJECTED);
	*rej = q.rej;
	return r;
}
