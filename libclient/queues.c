/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/queues.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/address.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

static bool is_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* Of a descriptor that has no other flag of F_SETFL */
static int unblock(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_cq(struct reddn_session *s, char *err, size_t errlen)
{
	struct ibv_context *verbs = s->connection[0].id->verbs;
	uint32_t depth = s->info.depth;
	/* Two batches of receives, and sends without a known completion: all of them may be flushed. */
	struct ibv_cq_init_attr_ex attr = {.cqe = 2 * depth + s->wqes * s->info.connections + 16,
		.wc_flags = IBV_WC_EX_WITH_IMM,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};

	s->channel = ibv_create_comp_channel(verbs);
	if (!s->channel)
		return reddn_fail(-errno, err, errlen, "no completion channel: %m");
	attr.channel = s->channel;
	s->cq_ex = ibv_create_cq_ex(verbs, &attr);
	s->cq = s->cq_ex ? ibv_cq_ex_to_cq(s->cq_ex)
			 : ibv_create_cq(verbs, (int)attr.cqe, NULL, s->channel, 0);
	return s->cq ? 0
		     : reddn_fail(-errno, err, errlen, "no completion queue for a depth of %u: %m", depth);
}

/*
 * The connection manager modifies a queue pair that it has made to INIT twice, by four calls. Of iWARP it
 * connects none that it does not know.
 */
static struct ibv_qp *new_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (is_iwarp(id))
		return rdma_create_qp_ex(id, attr) == 0 ? id->qp : NULL;
	return ibv_create_qp_ex(id->verbs, attr);
}

/* Devices differ in how much data a WQE holds inline; some support none. */
static void try_qp(struct reddn_connection *k, struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t inline_bytes[] = {REDDN_WIRE_INLINE, 32, 0};

	for (unsigned i = 0; !k->qp && i < COUNT(inline_bytes); i++) {
		attr->cap.max_inline_data = inline_bytes[i];
		k->qp = new_qp(k->id, attr);
	}
}

int reddn_queue_pair_init(struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen)
{
	uint32_t depth = s->depth;
	/* If it puts is known with the answer only */
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {.max_send_wr = s->wqes,
			.max_recv_wr = 2 * depth,
			.max_send_sge = REDDN_PUT_PLACES,
			.max_recv_sge = s->into ? REDDN_INTO_PLACES : 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND};

	try_qp(k, &attr);
	if (k->qp) {
		k->qp_ex = ibv_qp_to_qp_ex(k->qp);
	} else {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		try_qp(k, &attr);
	}
	if (!k->qp)
		return reddn_fail(
			errno ? -errno : -EIO, err, errlen, "no queue pair for a depth of %u: %m", depth);
	s->inline_max =
		attr.cap.max_inline_data < REDDN_WIRE_INLINE ? attr.cap.max_inline_data : REDDN_WIRE_INLINE;
	return 0;
}

int reddn_queues_init(struct reddn_session *s, char *err, size_t errlen)
{
	s->pd = ibv_alloc_pd(s->connection[0].id->verbs);
	if (!s->pd)
		return reddn_fail(-errno, err, errlen, "no protection domain: %m");
	s->mr = ibv_reg_mr(s->pd, s->area, s->area_len,
		IBV_ACCESS_LOCAL_WRITE | (s->into ? 0 : IBV_ACCESS_REMOTE_WRITE));
	if (!s->mr)
		return reddn_fail(
			-errno, err, errlen, "cannot register %zu bytes for replies: %m", s->area_len);
	for (uint32_t i = 0; i < s->info.depth; i++)
		s->number[i] = (struct ibv_sge){.addr = (uintptr_t)s->numbers + i * REDDN_NUMBER_BYTES,
			.length = REDDN_NUMBER_BYTES,
			.lkey = s->mr->lkey};
	return make_cq(s, err, errlen);
}

/* To be watched by @epoll, and not to block */
static int watch(int fd, int epoll, char *err, size_t errlen)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int r = unblock(fd);

	if (r < 0)
		return reddn_fail(r, err, errlen, "fcntl: %s", strerror(-r));
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? reddn_fail(-errno, err, errlen, "epoll: %m")
							    : 0;
}

int reddn_queues_open(struct reddn_session *s, int epoll, char *err, size_t errlen)
{
	s->events = rdma_create_event_channel();
	if (!s->events)
		return reddn_fail(-errno, err, errlen, "no RDMA connection manager: %m");
	return watch(s->events->fd, epoll, err, errlen);
}

int reddn_queues_register(const struct reddn_session *s, void *memory, size_t len, struct ibv_mr **mr)
{
	*mr = ibv_reg_mr(s->pd, memory, len, IBV_ACCESS_LOCAL_WRITE);
	return *mr ? 0 : -errno;
}

int reddn_queues_register_dmabuf(const struct reddn_session *s, void *memory, size_t len, int dmabuf,
	uint64_t offset, struct ibv_mr **mr)
{
	*mr = ibv_reg_dmabuf_mr(s->pd, offset, len, (uintptr_t)memory, dmabuf, IBV_ACCESS_LOCAL_WRITE);
	if (*mr)
		return 0;
	/* a kernel that has no such call */
	return errno == EPROTONOSUPPORT ? -EOPNOTSUPP : -errno;
}

void reddn_queues_leave(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

int reddn_queues_watch(struct reddn_session *s, int epoll, char *err, size_t errlen)
{
	return watch(s->channel->fd, epoll, err, errlen);
}

/* ---- states of a queue pair ---- */

/*
 * On RoCE there is one P_Key (Linux hw/mlx5/main.c, mlx5_query_port_roce; rxe_param.h), and the GID is the IP
 * address (annex A17). On InfiniBand it is another, unless it is link-local.
 */
static bool is_roce(struct rdma_cm_id *id)
{
	uint8_t address[16];

	address_read(rdma_get_local_addr(id), address);
	return id->route.num_paths && memcmp(address, id->route.path_rec[0].sgid.raw, sizeof(address)) == 0 &&
	       address[0] != 0xfe;
}

/* For a connection that the other end has left, the connection manager has no attributes and takes no answer:
 * EINVAL (Linux cm.c, cm_init_qp_rtr_attr and ib_send_cm_rtu) */
static int cm_result(int error)
{
	return error == EINVAL ? 1 : -error;
}

static int modify(struct reddn_connection *k, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	if (rdma_init_qp_attr(k->id, &attr, &mask) < 0)
		return cm_result(errno);
	return -ibv_modify_qp(k->qp, &attr, mask);
}

/* Before the REQ the connection manager has the index of the P_Key, but no rights */
static int modify_to_init(const struct reddn_session *s, struct reddn_connection *k)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = k->id->port_num};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (!is_roce(k->id) && rdma_init_qp_attr(k->id, &attr, &mask) < 0)
		return -errno;
	attr.qp_access_flags = s->into ? 0 : IBV_ACCESS_REMOTE_WRITE;
	return -ibv_modify_qp(k->qp, &attr, mask | IBV_QP_ACCESS_FLAGS);
}

static int initialize(const struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen)
{
	int r = modify_to_init(s, k);

	return r < 0 ? reddn_fail(r, err, errlen, "cannot prepare the queue pair: %s", strerror(-r)) : 0;
}

int reddn_queue_pair_begin(
	const struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen)
{
	return k->id->qp || is_roce(k->id) ? 0 : initialize(s, k, err, errlen);
}

int reddn_queue_pair_prepare(
	const struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen)
{
	int r = k->id->qp || !is_roce(k->id) ? 0 : initialize(s, k, err, errlen);

	if (r < 0 || s->into)
		return r;
	for (int i = 0; i < 2 && r == 0; i++)
		r = reddn_post_receives(k);
	return r < 0 ? reddn_fail(r, err, errlen, "cannot post receives: %s", strerror(-r)) : 0;
}

enum rdma_cm_event_type reddn_queue_pair_answer(const struct reddn_connection *k)
{
	return k->id->qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE;
}

int reddn_queue_pair_connect(struct reddn_connection *k, char *err, size_t errlen)
{
	int r;

	if (k->id->qp)
		return 0;
	r = modify(k, IBV_QPS_RTR);
	if (r == 0)
		r = modify(k, IBV_QPS_RTS);
	if (r == 0 && rdma_establish(k->id) < 0)
		r = cm_result(errno);
	return r < 0 ? reddn_fail(r, err, errlen, "cannot connect the queue pair: %s", strerror(-r)) : r;
}

static void queue_pair_deinit(struct reddn_connection *k)
{
	if (!k->qp)
		return;
	rdma_disconnect(k->id);
	if (k->id->qp)
		rdma_destroy_qp(k->id);
	else
		ibv_destroy_qp(k->qp);
}

/* Only one that was armed has events, and its channel does not block. True: there were some */
static bool drain_events(const struct reddn_session *s)
{
	unsigned events = 0;
	struct ibv_cq *cq;
	void *context;

	while (s->armed && ibv_get_cq_event(s->channel, &cq, &context) == 0)
		events++;
	if (events)
		ibv_ack_cq_events(s->cq, events);
	return events;
}

int reddn_queues_arm(struct reddn_session *s)
{
	if (!drain_events(s) && s->armed)
		return 0;
	s->armed = true;
	return -ibv_req_notify_cq(s->cq, 0);
}

int reddn_queues_events(struct reddn_session *s)
{
	struct pollfd p = {.fd = s->events->fd, .events = POLLIN};
	struct rdma_cm_event *ev;
	int r = 0;

	while (r == 0 && poll(&p, 1, 0) > 0 && rdma_get_cm_event(s->events, &ev) == 0) {
		s->hangup |= ev->event == RDMA_CM_EVENT_DISCONNECTED;
		r = ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL ? -ENODEV : 0;
		rdma_ack_cm_event(ev);
	}
	return r;
}

void reddn_queues_unwatch(const struct reddn_session *s, int epoll)
{
	if (s->events)
		epoll_ctl(epoll, EPOLL_CTL_DEL, s->events->fd, NULL);
	if (s->channel)
		epoll_ctl(epoll, EPOLL_CTL_DEL, s->channel->fd, NULL);
}

void reddn_queues_free(struct reddn_session *s)
{
	struct reddn_connection *end = s->connection ? s->connection + s->info.connections : NULL;

	for (struct reddn_connection *k = s->connection; k < end; k++)
		queue_pair_deinit(k);
	reddn_queues_leave(&s->mr);
	reddn_queues_leave(&s->puts);
	reddn_queues_leave(&s->sunk);
	for (unsigned i = 0; i < REDDN_MEMORIES; i++)
		reddn_queues_leave(&s->memory[i]);
	if (s->cq) {
		drain_events(s);
		ibv_destroy_cq(s->cq);
	}
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	if (s->pd)
		ibv_dealloc_pd(s->pd);
	for (struct reddn_connection *k = s->connection; k < end; k++)
		if (k->id)
			rdma_destroy_id(k->id);
	if (s->events)
		rdma_destroy_event_channel(s->events);
	s->cq = NULL;
	s->cq_ex = NULL;
	s->channel = NULL;
	s->pd = NULL;
	s->events = NULL;
	reddn_session_deinit(s);
}

int reddn_post_receives(struct reddn_connection *k)
{
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(k->qp, k->recvs, &bad);
}

static int post_send(struct reddn_connection *k, struct ibv_sge *places, int n, unsigned flags)
{
	struct ibv_send_wr *bad, wr = {.wr_id = reddn_send_id(k),
					 .sg_list = places,
					 .num_sge = n,
					 .opcode = IBV_WR_SEND,
					 .send_flags = flags};

	return -ibv_post_send(k->qp, &wr, &bad);
}

int reddn_post_request_wr(const struct reddn_session *s, struct reddn_connection *k, uint8_t *bytes,
	uint32_t len, const struct ibv_mr *mr, bool signaled)
{
	struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = len, .lkey = mr->lkey};

	return post_send(k, &sge, len ? 1 : 0,
		(signaled ? IBV_SEND_SIGNALED : 0) | (len <= s->inline_max ? IBV_SEND_INLINE : 0));
}

int reddn_post_places(struct reddn_connection *k, struct ibv_sge *places, int n, bool signaled)
{
	struct ibv_qp_ex *qp = k->qp_ex;

	if (!qp)
		return post_send(k, places, n, signaled ? IBV_SEND_SIGNALED : 0);
	ibv_wr_start(qp);
	qp->wr_id = reddn_send_id(k);
	qp->wr_flags = signaled ? IBV_SEND_SIGNALED : 0;
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, (size_t)n, places);
	return -ibv_wr_complete(qp);
}
