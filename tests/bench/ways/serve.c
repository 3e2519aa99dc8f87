/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/serve.h"

#include "protocol/table-format.h"
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/pages.h"
#include "tests/bench/ways/requests.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { CQES = 16384, POLL_BATCH = 16 };

struct serve_conn {
	struct serve *s;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t *mem; /* depth requests */
	size_t bytes;
	uint32_t depth, signal_every, request_max;
	uint64_t answered;
	LIST_ENTRY(serve_conn) link;
};

struct serve {
	struct ibv_pd *pd;
	struct source *source;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	LIST_HEAD(, serve_conn) conns;
};

/* The answers of one poll, posted with few doorbells. */
struct batch {
	struct serve_conn *conn; /* their connection */
	unsigned n;
	struct ibv_sge sge[POLL_BATCH][REQUEST_GATHER], request[POLL_BATCH];
	uint64_t found[POLL_BATCH];
	struct ibv_send_wr send[POLL_BATCH];
	struct ibv_recv_wr recv[POLL_BATCH];
};

int serve_new(struct serve **out, struct ibv_pd *pd, struct source *source, bool events)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	if (r == 0) {
		s->pd = pd;
		s->source = source;
		LIST_INIT(&s->conns);
		if (events) {
			s->channel = ibv_create_comp_channel(pd->context);
			if (!s->channel || fcntl(s->channel->fd, F_SETFL, O_NONBLOCK) < 0)
				r = -errno;
		}
	}
	if (r == 0) {
		s->cq = ibv_create_cq(pd->context, CQES, NULL, s->channel, 0);
		r = s->cq ? 0 : -errno;
	}
	if (r < 0) {
		serve_free(s);
		return r;
	}
	*out = s;
	return 0;
}

void serve_free(struct serve *s)
{
	struct serve_conn *c;

	if (!s)
		return;
	while ((c = LIST_FIRST(&s->conns)))
		serve_remove(c);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	if (s->channel)
		ibv_destroy_comp_channel(s->channel);
	free(s);
}

uint32_t serve_request_max(const struct serve_conn *c)
{
	return c->request_max;
}

static struct request *request_at(const struct serve_conn *c, uint32_t slot)
{
	return (struct request *)(c->mem + (size_t)slot * c->request_max);
}

static void recv_of(const struct serve_conn *c, uint32_t slot, struct ibv_recv_wr *wr, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){(uintptr_t)request_at(c, slot), c->request_max, c->mr->lkey};
	*wr = (struct ibv_recv_wr){.wr_id = slot, .sg_list = sge, .num_sge = 1};
}

int serve_add(struct serve *s, struct rdma_cm_id *id, uint32_t depth, uint32_t keys, struct serve_conn **out)
{
	struct ibv_qp_init_attr attr = {
		.cap = {2 * depth, depth, keys < REQUEST_GATHER ? keys : REQUEST_GATHER, 1, REQUEST_INLINE},
		.qp_type = IBV_QPT_RC};
	const size_t key = s->source->request_max + (keys > 1 ? sizeof(uint16_t) : 0);
	struct serve_conn *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	*c = (struct serve_conn){.s = s, .id = id, .depth = depth, .signal_every = depth > 1 ? depth / 2 : 1};
	LIST_INSERT_HEAD(&s->conns, c, link);
	attr.send_cq = attr.recv_cq = s->cq;
	c->request_max = (uint32_t)((sizeof(struct request) + keys * key + 63) & ~63ul);
	c->bytes = (size_t)depth * c->request_max;
	c->mem = pages_get(c->bytes);
	if (!c->mem)
		r = -ENOMEM;
	if (r == 0) {
		c->mr = ibv_reg_mr(s->pd, c->mem, c->bytes, IBV_ACCESS_LOCAL_WRITE);
		r = c->mr && rdma_create_qp(id, s->pd, &attr) == 0 ? 0 : -errno;
	}
	for (uint32_t i = 0; i < depth && r == 0; i++) {
		struct ibv_recv_wr wr, *bad;
		struct ibv_sge sge;

		recv_of(c, i, &wr, &sge);
		r = -ibv_post_recv(id->qp, &wr, &bad);
	}
	if (r < 0)
		serve_remove(c);
	else
		*out = c;
	return r;
}

void serve_remove(struct serve_conn *c)
{
	LIST_REMOVE(c, link);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	pages_put(c->mem, c->bytes);
	free(c);
}

static struct serve_conn *find(const struct serve *s, uint32_t qpn)
{
	struct serve_conn *c;

	LIST_FOREACH (c, &s->conns, link)
		if (c->id->qp->qp_num == qpn)
			break;
	return c;
}

/* Status of a request, and the bytes of its answer. */
static int answer(struct source *s, const struct request *q, uint32_t bytes, struct ibv_sge *sge)
{
	bool gets = q->val_len == REQUEST_GET, puts = !gets && q->val_len != REQUEST_DELETE;
	uint32_t val_len = puts ? q->val_len & ~REQUEST_IF : 0;
	uint64_t sum = 0;
	size_t of_sum = puts && q->val_len & REQUEST_IF ? sizeof(sum) : 0;

	if (bytes < sizeof(*q) || bytes - sizeof(*q) != q->key_len + (uint64_t)of_sum + val_len)
		return -EPROTO;
	if (gets)
		return s->get(s, q->bytes, q->key_len, sge);
	memcpy(&sum, q->bytes + q->key_len, of_sum);
	return s->set(s, q->bytes, q->key_len, puts ? q->bytes + q->key_len + of_sum : NULL, val_len,
		of_sum ? &sum : NULL);
}

/* The bits of those keys that are there. @sge, if not NULL: where their records are, @n of them. */
static uint64_t find_keys(
	struct source *s, const struct request *q, uint32_t bytes, struct ibv_sge *sge, int *n)
{
	const uint8_t *at = q->bytes, *end = (const uint8_t *)q + bytes;
	uint64_t found = 0;
	uint16_t len;

	*n = 0;
	for (uint32_t i = 0; i < q->key_len && i < (sge ? REQUEST_GATHER : REQUEST_KEYS) && end - at >= 2;
		i++) {
		struct ibv_sge record;

		memcpy(&len, at, sizeof(len));
		at += sizeof(len);
		if (end - at < len)
			break;
		if (s->get(s, at, len, &record) == 0) {
			found |= 1ull << i;
			record.length = (uint32_t)reddn_record_padded(record.length);
			if (sge)
				sge[(*n)++] = record;
		}
		at += len;
	}
	return found;
}

/* The places that the answer to request @i of the batch comes from. Returns the status in its immediate. */
static int answer_into(struct batch *b, const struct request *q, uint32_t bytes, int *num_sge)
{
	struct source *source = b->conn->s->source;
	struct ibv_sge *sge = b->sge[b->n];
	int status;

	if (bytes >= sizeof(*q) && q->val_len == REQUEST_MGET)
		return (int)find_keys(source, q, bytes, sge, num_sge);
	if (bytes >= sizeof(*q) && q->val_len == REQUEST_EXISTS) {
		b->found[b->n] = find_keys(source, q, bytes, NULL, num_sge);
		sge[0] = (struct ibv_sge){(uintptr_t)&b->found[b->n], sizeof(b->found[0]), 0};
		*num_sge = 1;
		return 0;
	}
	sge[0] = (struct ibv_sge){0};
	status = answer(source, q, bytes, &sge[0]);
	*num_sge = status == 0 && sge[0].length;
	return status;
}

/* Posts answers first. A post fails only on a failed queue pair, whose client notices. */
static void post(struct batch *b)
{
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;

	if (!b->n)
		return;
	b->send[b->n - 1].next = NULL;
	b->recv[b->n - 1].next = NULL;
	ibv_post_recv(b->conn->id->qp, b->recv, &bad_recv);
	ibv_post_send(b->conn->id->qp, b->send, &bad_send);
	b->n = 0;
}

static void handle(struct batch *b, const struct ibv_wc *wc)
{
	struct serve_conn *c = b->conn;
	const struct request *q = request_at(c, (uint32_t)wc->wr_id);
	struct ibv_send_wr *send = &b->send[b->n];
	int num_sge, status = answer_into(b, q, wc->byte_len, &num_sge);

	*send = (struct ibv_send_wr){
		.wr_id = UINT64_MAX,
		.sg_list = b->sge[b->n],
		.num_sge = num_sge,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(request_imm(q->slot, status)),
		.wr.rdma = {q->to, q->rkey},
	};
	if (num_sge == 0 || (num_sge == 1 && b->sge[b->n][0].length <= REQUEST_INLINE))
		send->send_flags |= IBV_SEND_INLINE;
	if (++c->answered % c->signal_every == 0)
		send->send_flags |= IBV_SEND_SIGNALED;
	recv_of(c, (uint32_t)wc->wr_id, &b->recv[b->n], &b->request[b->n]);
	if (b->n) {
		b->send[b->n - 1].next = send;
		b->recv[b->n - 1].next = &b->recv[b->n];
	}
	b->n++;
}

int serve_poll(struct serve *s)
{
	struct batch b;
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(s->cq, POLL_BATCH, wc);

	b.conn = NULL;
	b.n = 0;
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id == UINT64_MAX)
			continue;
		if (!b.conn || b.conn->id->qp->qp_num != wc[i].qp_num) {
			post(&b);
			b.conn = find(s, wc[i].qp_num);
		}
		if (b.conn)
			handle(&b, &wc[i]);
	}
	post(&b);
	return n;
}

int serve_fd(const struct serve *s)
{
	return s->channel->fd;
}

int serve_arm(struct serve *s)
{
	struct ibv_cq *cq;
	void *context;
	unsigned events = 0;

	while (ibv_get_cq_event(s->channel, &cq, &context) == 0)
		events++;
	if (events)
		ibv_ack_cq_events(s->cq, events);
	return -ibv_req_notify_cq(s->cq, 0);
}
