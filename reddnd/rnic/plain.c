/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/plain.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 2 }; /* of the data of a message */

struct rnic_plain_events {
	struct ibv_comp_channel *channel;
};

struct rnic_plain {
	struct rnic_arena *arena;
	uint64_t offset; /* in the arena */
	uint8_t *mem;    /* NULL: there is none */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	/* to be posted */
	unsigned nsends;
	struct ibv_send_wr send[RNIC_PLAIN_BATCH];
	struct ibv_sge sge[RNIC_PLAIN_BATCH][PARTS];
};

/* ---- events ----------------------------------------------------------------------------------- */

int rnic_plain_events_new(struct rnic_plain_events **out, struct rnic_device *dev)
{
	struct rnic_plain_events *e = calloc(1, sizeof(*e));
	int flags;

	if (!e)
		return -ENOMEM;
	e->channel = ibv_create_comp_channel(dev->ctx);
	flags = e->channel ? fcntl(e->channel->fd, F_GETFL) : -1;
	if (flags < 0 || fcntl(e->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		int r = log_errno(errno ? -errno : -ENOMEM, "%s: cannot make a channel for completions",
			rnic_device_name(dev));

		rnic_plain_events_free(e);
		return r;
	}
	*out = e;
	return 0;
}

void rnic_plain_events_free(struct rnic_plain_events *e)
{
	if (e && e->channel)
		ibv_destroy_comp_channel(e->channel);
	free(e);
}

int rnic_plain_events_fd(const struct rnic_plain_events *e)
{
	return e->channel->fd;
}

int rnic_plain_events_next(struct rnic_plain_events *e, uint64_t *cookie)
{
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	if (ibv_get_cq_event(e->channel, &cq, &context))
		return errno == EAGAIN || errno == EINTR ? 0 : -(errno ? errno : EIO);
	ibv_ack_cq_events(cq, 1); /* so that destroying the CQ waits for nothing */
	*cookie = (uintptr_t)context;
	return 1;
}

/* ---- making ----------------------------------------------------------------------------------- */

static int make_memory(struct rnic_plain *q, struct rnic_pd *pd, uint64_t size)
{
	int r = rnic_arena_alloc(q->arena, size, &q->offset);

	if (r < 0)
		return r;
	q->mem = rnic_arena_at(q->arena, q->offset);
	q->mr = ibv_reg_mr(pd->pd, q->mem, size, IBV_ACCESS_LOCAL_WRITE);
	return q->mr ? 0 : log_errno(-errno, "cannot register %" PRIu64 " bytes of queue memory", size);
}

static int make_queues(struct rnic_plain *q, struct rnic_pd *pd, const struct rnic_plain_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = attr->sends,
			.max_recv_wr = attr->recvs,
			.max_send_sge = PARTS,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	q->cq = ibv_create_cq(pd->dev->ctx, (int)(attr->sends + attr->recvs), (void *)(uintptr_t)attr->cookie,
		attr->events->channel, 0);
	if (!q->cq)
		return log_errno(
			-errno, "cannot make a completion queue of %u entries", attr->sends + attr->recvs);
	init.send_cq = init.recv_cq = q->cq;
	q->qp = ibv_create_qp(pd->pd, &init);
	return q->qp ? 0
		     : log_errno(-errno, "cannot make a queue pair for %u sends and %u receives", attr->sends,
			       attr->recvs);
}

int rnic_plain_new(struct rnic_plain **out, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr)
{
	struct rnic_plain *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->arena = arena;
	r = make_memory(q, pd, attr->size);
	if (r == 0)
		r = make_queues(q, pd, attr);
	if (r < 0)
		rnic_plain_free(q);
	else
		*out = q;
	return r;
}

/* Memory that the device still holds must never be given to another session */
void rnic_plain_free(struct rnic_plain *q)
{
	bool held = false;

	if (!q)
		return;
	held |= q->qp && ibv_destroy_qp(q->qp);
	held |= q->cq && ibv_destroy_cq(q->cq);
	held |= q->mr && ibv_dereg_mr(q->mr);
	if (held)
		log_error("the device does not release queue memory at %#" PRIx64, q->offset);
	else if (q->mem)
		rnic_arena_release(q->arena, q->offset);
	free(q);
}

void rnic_plain_stop(struct rnic_plain *q)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (q && q->qp && ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		log_error("cannot stop queue pair %#x: %s", q->qp->qp_num, strerror(errno));
}

/* ---- use -------------------------------------------------------------------------------------- */

uint32_t rnic_plain_qpn(const struct rnic_plain *q)
{
	return q->qp->qp_num;
}

uint8_t *rnic_plain_memory(const struct rnic_plain *q)
{
	return q->mem;
}

/* Of a wr_id, as an error has nothing else of what it was; that of a send has its number above and its tag
 * below */
#define RECEIVE UINT64_MAX

static struct ibv_sge at(const struct rnic_plain *q, uint64_t off, uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)(q->mem + off), .length = len, .lkey = q->mr->lkey};
}

int rnic_plain_receive(struct rnic_plain *q, const uint64_t *off, unsigned n, uint32_t len)
{
	struct ibv_recv_wr wr[RNIC_PLAIN_BATCH], *bad;
	struct ibv_sge sge[RNIC_PLAIN_BATCH];

	for (unsigned i = 0; i < n; i++) {
		sge[i] = at(q, off[i], len);
		wr[i] = (struct ibv_recv_wr){.wr_id = RECEIVE,
			.sg_list = &sge[i],
			.num_sge = 1,
			.next = i + 1 < n ? &wr[i + 1] : NULL};
	}
	return -ibv_post_recv(q->qp, wr, &bad);
}

static enum ibv_wr_opcode opcode_of(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_WRITE:
		return IBV_WR_RDMA_WRITE;
	case WQE_OP_WRITE_IMM:
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case WQE_OP_SEND_IMM:
		return IBV_WR_SEND_WITH_IMM;
	default:
		return IBV_WR_SEND;
	}
}

static int post(struct rnic_plain *q)
{
	struct ibv_send_wr *bad;

	q->send[q->nsends - 1].next = NULL;
	q->nsends = 0;
	return -ibv_post_send(q->qp, q->send, &bad);
}

int rnic_plain_send(struct rnic_plain *q, const struct rnic_plain_send *s)
{
	int r = q->nsends == RNIC_PLAIN_BATCH ? post(q) : 0;
	struct ibv_send_wr *wr = &q->send[q->nsends];

	if (r < 0)
		return r;
	q->sge[q->nsends][0] = at(q, s->off, s->len);
	q->sge[q->nsends][1] = at(q, s->more_off, s->more_len);
	/* The rest of it stays zero, and is for other opcodes */
	wr->wr_id = s->tag;
	wr->next = wr + 1;
	wr->sg_list = q->sge[q->nsends];
	wr->num_sge = s->more_len ? PARTS : 1;
	wr->opcode = opcode_of(s->opcode);
	wr->send_flags = s->solicited ? IBV_SEND_SOLICITED : 0u;
	wr->imm_data = htonl(s->imm);
	wr->wr.rdma.remote_addr = s->remote;
	wr->wr.rdma.rkey = s->rkey;
	q->nsends++;
	return 0;
}

int rnic_plain_flush(struct rnic_plain *q, uint32_t number)
{
	struct ibv_send_wr *last;

	if (q->nsends == 0)
		return 0;
	last = &q->send[q->nsends - 1];
	last->wr_id |= (uint64_t)number << 32;
	last->send_flags |= IBV_SEND_SIGNALED;
	return post(q);
}

static uint8_t syndrome_of(enum ibv_wc_status status)
{
	static const uint8_t syndromes[] = {
		[IBV_WC_LOC_LEN_ERR] = CQE_SYND_LOCAL_LENGTH,
		[IBV_WC_LOC_QP_OP_ERR] = CQE_SYND_LOCAL_QP_OP,
		[IBV_WC_LOC_PROT_ERR] = CQE_SYND_LOCAL_PROT,
		[IBV_WC_WR_FLUSH_ERR] = CQE_SYND_FLUSH,
		[IBV_WC_BAD_RESP_ERR] = CQE_SYND_BAD_RESP,
		[IBV_WC_LOC_ACCESS_ERR] = CQE_SYND_LOCAL_ACCESS,
		[IBV_WC_REM_INV_REQ_ERR] = CQE_SYND_REMOTE_INVAL,
		[IBV_WC_REM_ACCESS_ERR] = CQE_SYND_REMOTE_ACCESS,
		[IBV_WC_REM_OP_ERR] = CQE_SYND_REMOTE_OP,
		[IBV_WC_RETRY_EXC_ERR] = CQE_SYND_RETRY,
		[IBV_WC_RNR_RETRY_EXC_ERR] = CQE_SYND_RNR_RETRY,
		[IBV_WC_REM_ABORT_ERR] = CQE_SYND_REMOTE_ABORT,
	};

	if (status == IBV_WC_SUCCESS)
		return 0;
	return status < COUNT(syndromes) && syndromes[status] ? syndromes[status] : CQE_SYND_LOCAL_QP_OP;
}

int rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	struct ibv_wc wc[RNIC_PLAIN_BATCH];
	int n = ibv_poll_cq(q->cq, RNIC_PLAIN_BATCH, wc);

	for (int i = 0; i < n; i++)
		c[i] = (struct rnic_plain_completion){
			.receive = wc[i].wr_id == RECEIVE,
			.syndrome = syndrome_of(wc[i].status),
			.vendor = (uint8_t)wc[i].vendor_err,
			.tag = (uint32_t)wc[i].wr_id,
			.number = (uint32_t)(wc[i].wr_id >> 32),
			.bytes = wc[i].byte_len,
		};
	return n < 0 ? -EIO : n;
}

int rnic_plain_arm(struct rnic_plain *q)
{
	return -ibv_req_notify_cq(q->cq, 0);
}

/* ---- connecting ------------------------------------------------------------------------------- */

static int modify(struct rnic_plain *q, struct ibv_qp_attr *attr, int mask)
{
	return ibv_modify_qp(q->qp, attr, mask)
		       ? log_errno(-errno, "queue pair %#x cannot be connected", q->qp->qp_num)
		       : 0;
}

/* The kernel finds the MAC address once more (ib_resolve_eth_dmac); rnic_conn_resolve() has seen to it that
 * this takes no time */
int rnic_plain_connect(struct rnic_plain *q, const struct rnic_path *path, const struct ibv_ah_attr *ah)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .pkey_index = path->pkey_index, .port_num = path->port};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
		.ah_attr = *ah,
		.path_mtu = path->mtu,
		.dest_qp_num = path->dest_qpn,
		.rq_psn = path->rq_psn,
		.min_rnr_timer = path->min_rnr_timer};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
		.timeout = path->timeout,
		.retry_cnt = path->retry_cnt,
		.rnr_retry = path->rnr_retry,
		.sq_psn = path->sq_psn};
	int r = modify(q, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (r == 0)
		r = modify(q, &rtr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (r == 0)
		r = modify(q, &rts,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
	return r;
}
