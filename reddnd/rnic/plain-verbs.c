/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/internal.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/util/log.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct verbs {
	struct rnic_plain base;
	struct rnic_arena *arena;
	uint64_t offset; /* in the arena */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct rnic_plain_recvs recvs;
	uint64_t received; /* RECVs posted */
	/* to be posted */
	unsigned nsends;
	struct ibv_send_wr send[RNIC_PLAIN_BATCH];
	struct ibv_sge sge[RNIC_PLAIN_BATCH][PLAIN_PARTS];
};

static struct verbs *of(struct rnic_plain *q)
{
	return (struct verbs *)q;
}

/* ---- making ----------------------------------------------------------------------------------- */

static int make_memory(struct verbs *q, struct rnic_pd *pd, uint64_t size)
{
	int r = rnic_arena_alloc(q->arena, size, &q->offset);

	if (r < 0)
		return r;
	q->base.mem = rnic_arena_at(q->arena, q->offset);
	q->mr = ibv_reg_mr(pd->pd, q->base.mem, size, IBV_ACCESS_LOCAL_WRITE);
	return q->mr ? 0 : log_errno(-errno, "cannot register %" PRIu64 " bytes of queue memory", size);
}

static int make_queues(struct verbs *q, struct rnic_pd *pd, const struct rnic_plain_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = attr->sends,
			.max_recv_wr = attr->recvs.n,
			.max_send_sge = PLAIN_PARTS,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	q->cq = ibv_create_cq(pd->dev->ctx, (int)(attr->sends + attr->recvs.n),
		(void *)(uintptr_t)attr->cookie, attr->events->channel, 0);
	if (!q->cq)
		return log_errno(
			-errno, "cannot make a completion queue of %u entries", attr->sends + attr->recvs.n);
	init.send_cq = init.recv_cq = q->cq;
	q->qp = ibv_create_qp(pd->pd, &init);
	if (!q->qp)
		return log_errno(-errno, "cannot make a queue pair for %u sends and %u receives", attr->sends,
			attr->recvs.n);
	q->base.qpn = q->qp->qp_num;
	return 0;
}

int plain_verbs_new(struct rnic_plain **out, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr)
{
	struct verbs *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	q->arena = arena;
	q->recvs = attr->recvs;
	r = make_memory(q, pd, attr->size);
	if (r == 0)
		r = make_queues(q, pd, attr);
	if (r < 0)
		plain_verbs_free(&q->base);
	else
		*out = &q->base;
	return r;
}

/* Memory that the device still holds must never be given to another session */
void plain_verbs_free(struct rnic_plain *p)
{
	struct verbs *q = of(p);
	bool held = false;

	held |= q->qp && ibv_destroy_qp(q->qp);
	held |= q->cq && ibv_destroy_cq(q->cq);
	held |= q->mr && ibv_dereg_mr(q->mr);
	if (held)
		log_error("the device does not release queue memory at %#" PRIx64, q->offset);
	else if (q->base.mem)
		rnic_arena_release(q->arena, q->offset);
	free(q);
}

void plain_verbs_stop(struct rnic_plain *p)
{
	struct verbs *q = of(p);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
		log_error("cannot stop queue pair %#x: %s", q->qp->qp_num, strerror(errno));
}

/* ---- use -------------------------------------------------------------------------------------- */

/* Of a wr_id, as an error has nothing else of what it was; that of a send has its number above and its tag
 * below */
#define RECEIVE UINT64_MAX

static struct ibv_sge at(const struct verbs *q, uint64_t off, uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)(q->base.mem + off), .length = len, .lkey = q->mr->lkey};
}

int plain_verbs_receive(struct rnic_plain *p, uint64_t to)
{
	struct ibv_recv_wr wr[RNIC_PLAIN_BATCH], *bad;
	struct ibv_sge sge[RNIC_PLAIN_BATCH];
	struct verbs *q = of(p);
	int r = 0;

	while (r == 0 && q->received < to) {
		unsigned n = 0;

		for (; n < RNIC_PLAIN_BATCH && q->received + n < to; n++) {
			sge[n] = at(q, (q->received + n) % q->recvs.n * q->recvs.stride, q->recvs.bytes);
			wr[n] = (struct ibv_recv_wr){
				.wr_id = RECEIVE, .sg_list = &sge[n], .num_sge = 1, .next = &wr[n + 1]};
		}
		wr[n - 1].next = NULL;
		r = -ibv_post_recv(q->qp, wr, &bad);
		q->received += r == 0 ? n : 0;
	}
	return r;
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

static int post(struct verbs *q)
{
	struct ibv_send_wr *bad;

	q->send[q->nsends - 1].next = NULL;
	q->nsends = 0;
	return -ibv_post_send(q->qp, q->send, &bad);
}

int plain_verbs_send(struct rnic_plain *p, const struct rnic_plain_send *s)
{
	struct verbs *q = of(p);
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
	wr->num_sge = s->more_len ? PLAIN_PARTS : 1;
	wr->opcode = opcode_of(s->opcode);
	wr->send_flags = s->solicited ? IBV_SEND_SOLICITED : 0u;
	wr->imm_data = htonl(s->imm);
	wr->wr.rdma.remote_addr = s->remote;
	wr->wr.rdma.rkey = s->rkey;
	q->nsends++;
	return 0;
}

int plain_verbs_flush(struct rnic_plain *p, uint32_t number)
{
	struct ibv_send_wr *last;
	struct verbs *q = of(p);

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

int plain_verbs_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	struct ibv_wc wc[RNIC_PLAIN_BATCH];
	int n = ibv_poll_cq(of(q)->cq, RNIC_PLAIN_BATCH, wc);

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

int plain_verbs_arm(struct rnic_plain *q)
{
	return -ibv_req_notify_cq(of(q)->cq, 0);
}

/* ---- connecting ------------------------------------------------------------------------------- */

static int modify(struct verbs *q, struct ibv_qp_attr *attr, int mask)
{
	return ibv_modify_qp(q->qp, attr, mask)
		       ? log_errno(-errno, "queue pair %#x cannot be connected", q->qp->qp_num)
		       : 0;
}

/* The kernel finds the MAC address once more (ib_resolve_eth_dmac); rnic_conn_resolve() has seen to it that
 * this takes no time */
int rnic_plain_connect(struct rnic_plain *p, const struct rnic_path *path, const struct ibv_ah_attr *ah)
{
	struct verbs *q = of(p);
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
