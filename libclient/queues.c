/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/queues.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/array.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

static int unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_cq(struct reddn *c, char *err, size_t errlen)
{
	struct ibv_context *verbs = c->connection[0].id->verbs;
	uint32_t depth = c->info.depth;
	int r;

	c->channel = ibv_create_comp_channel(verbs);
	if (!c->channel)
		return reddn_fail(-errno, err, errlen, "no completion channel: %m");
	/* Before there is a CQ, because reddn_close reads the channel until it is empty. */
	r = unblock(c->channel->fd);
	if (r < 0)
		return reddn_fail(r, err, errlen, "fcntl: %s", strerror(-r));
	/* Two batches of receives, and sends without a known completion: all of them may be flushed. */
	c->cq = ibv_create_cq(verbs, (int)(4 * depth + 16), c, c->channel, 0);
	return c->cq ? 0
		     : reddn_fail(-errno, err, errlen, "no completion queue for a depth of %u: %m", depth);
}

/* Devices differ in how much data a WQE holds inline; some support none. */
static int try_qp(struct reddn_connection *k, struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t inline_bytes[] = {REDDN_WIRE_INLINE, 32, 0};
	int r = -1;

	for (unsigned i = 0; r < 0 && i < COUNT(inline_bytes); i++) {
		attr->cap.max_inline_data = inline_bytes[i];
		r = rdma_create_qp_ex(k->id, attr);
	}
	return r;
}

static int make_qp(struct reddn *c, struct reddn_connection *k, char *err, size_t errlen)
{
	uint32_t depth = c->depth;
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = 2 * depth,
			.max_recv_wr = 2 * depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = c->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND};
	int r = try_qp(k, &attr);

	if (r == 0) {
		k->qp_ex = ibv_qp_to_qp_ex(k->id->qp);
	} else {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		r = try_qp(k, &attr);
	}
	if (r < 0)
		return reddn_fail(-errno, err, errlen, "no queue pair for a depth of %u: %m", depth);
	c->inline_max =
		attr.cap.max_inline_data < REDDN_WIRE_INLINE ? attr.cap.max_inline_data : REDDN_WIRE_INLINE;
	return 0;
}

int reddn_queues_init(struct reddn *c, char *err, size_t errlen)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int r;

	c->pd = ibv_alloc_pd(c->connection[0].id->verbs);
	if (!c->pd)
		return reddn_fail(-errno, err, errlen, "no protection domain: %m");
	c->mr = ibv_reg_mr(c->pd, c->area, c->area_len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!c->mr)
		return reddn_fail(
			-errno, err, errlen, "cannot register %zu bytes for replies: %m", c->area_len);
	for (uint32_t i = 0; i < c->info.depth; i++)
		c->number[i] = (struct ibv_sge){.addr = (uintptr_t)c->numbers + i * REDDN_NUMBER_BYTES,
			.length = REDDN_NUMBER_BYTES,
			.lkey = c->mr->lkey};
	r = make_cq(c, err, errlen);
	if (r < 0)
		return r;
	r = unblock(c->events->fd);
	if (r < 0)
		return reddn_fail(r, err, errlen, "fcntl: %s", strerror(-r));
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->channel->fd, &ev) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->events->fd, &ev) < 0)
		return reddn_fail(-errno, err, errlen, "epoll: %m");
	return 0;
}

int reddn_queue_pair_init(struct reddn *c, struct reddn_connection *k, char *err, size_t errlen)
{
	int r = make_qp(c, k, err, errlen);

	if (r < 0)
		return r;
	for (int i = 0; i < 2 && r == 0; i++)
		r = reddn_post_receives(k);
	return r < 0 ? reddn_fail(r, err, errlen, "cannot post receives: %s", strerror(-r)) : 0;
}

void reddn_queues_deinit(struct reddn *c)
{
	for (struct reddn_connection *k = c->connection; k < c->connection + c->info.connections; k++) {
		if (!k->id || !k->id->qp)
			continue;
		rdma_disconnect(k->id);
		rdma_destroy_qp(k->id);
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
	for (struct reddn_connection *k = c->connection; k < c->connection + c->info.connections; k++)
		if (k->id)
			rdma_destroy_id(k->id);
}

int reddn_post_receives(struct reddn_connection *k)
{
	struct ibv_recv_wr *bad;

	k->recvs_used = 0;
	return -ibv_post_recv(k->id->qp, k->recvs, &bad);
}

/* As providers without the calls of ibv_qp_ex take it. */
static int post_wr(
	const struct reddn *c, struct reddn_connection *k, uint8_t *bytes, uint64_t wr_id, unsigned flags)
{
	struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = c->info.request_len, .lkey = c->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = wr_id,
			.sg_list = &sge,
			.num_sge = sge.length ? 1 : 0,
			.opcode = IBV_WR_SEND,
			.send_flags = flags | (sge.length <= c->inline_max ? IBV_SEND_INLINE : 0)};

	return -ibv_post_send(k->id->qp, &wr, &bad);
}

int reddn_post_request(
	const struct reddn *c, struct reddn_connection *k, uint8_t *bytes, uint64_t wr_id, bool signaled)
{
	unsigned flags = signaled ? IBV_SEND_SIGNALED : 0;
	struct ibv_qp_ex *qp = k->qp_ex;
	uint32_t len = c->info.request_len;

	if (!qp)
		return post_wr(c, k, bytes, wr_id, flags);
	ibv_wr_start(qp);
	qp->wr_id = wr_id;
	qp->wr_flags = flags;
	ibv_wr_send(qp);
	if (len <= c->inline_max)
		ibv_wr_set_inline_data(qp, bytes, len);
	else
		ibv_wr_set_sge(qp, c->mr->lkey, (uintptr_t)bytes, len);
	return -ibv_wr_complete(qp);
}
