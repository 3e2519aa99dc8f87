/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/internal.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>

/* MIN_ENTRIES: an SQ begins at a multiple of a WQEBB behind its RQ, whose entries have one SGE each.
 * LOG_CQES: as many as a page has */
enum { LINE = 64, PAGE = 4096, STRIDE = WQE_DS, MIN_ENTRIES = WQE_BB / STRIDE, LOG_CQES = 6 };

/* What completions of sends lack */
struct sent {
	uint32_t tag, number;
};

struct direct {
	struct rnic_plain base;
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
	uint32_t mask;      /* of WQEBBs of the SQ; each WQE has one */
	uint16_t written;   /* WQEBBs; those before qp.sq_posted are posted */
	struct sent sent[]; /* by WQEBB */
};

static struct direct *of(struct rnic_plain *q)
{
	return (struct direct *)q;
}

/* ---- making ----------------------------------------------------------------------------------- */

/* Memory of messages, doorbell records, RQ and SQ, CQEs */
struct places {
	uint64_t db, wq, cqes, size;
	uint32_t rq_entries, sq_wqebbs;
	unsigned log_cqes;
};

static uint32_t at_least(uint32_t n, uint32_t least)
{
	while (least < n)
		least *= 2;
	return least;
}

static uint64_t aligned(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static struct places places_of(const struct rnic_plain_attr *attr)
{
	struct places p = {.rq_entries = at_least(attr->recvs.n, MIN_ENTRIES),
		.sq_wqebbs = at_least(attr->sends, MIN_ENTRIES),
		.log_cqes = LOG_CQES};

	/* All that is posted completes if the queue pair fails */
	while (1u << p.log_cqes < attr->recvs.n + attr->sends)
		p.log_cqes++;
	p.db = aligned(attr->size, LINE);
	p.wq = aligned(p.db + 2 * (uint64_t)RNIC_DB_BYTES, PAGE);
	p.cqes = aligned(p.wq + (uint64_t)p.rq_entries * STRIDE + (uint64_t)p.sq_wqebbs * WQE_BB, PAGE);
	p.size = p.cqes + ((uint64_t)RNIC_CQE_BYTES << p.log_cqes);
	return p;
}

uint64_t plain_direct_bytes(const struct rnic_plain_attr *attr)
{
	return places_of(attr).size;
}

/* The RECV of a place is the same each time. Of no bytes it has no SGE: length 0 would mean 2^31 */
static void write_recvs(struct direct *q, const struct rnic_plain_recvs *r, uint32_t entries)
{
	for (uint32_t i = 0; i < entries; i++)
		wqe_put_sge(q->qp.rq + (size_t)i * STRIDE, r->bytes, r->bytes ? q->block.lkey : WQE_LKEY_NONE,
			r->bytes ? q->block.iova + (uint64_t)(i % r->n) * r->stride : 0);
}

static int make_queues(struct direct *q, const struct places *p, const struct rnic_plain_attr *attr)
{
	const struct rnic_cq_attr cq = {
		.cqes_off = p->cqes,
		.db_off = p->db,
		.log_size = p->log_cqes,
		.cookie = attr->cookie,
		.events = attr->events->fd,
	};
	const struct rnic_qp_attr qp = {
		.wq_off = p->wq,
		.rq_entries = p->rq_entries,
		.rq_stride = STRIDE,
		.sq_wqebbs = p->sq_wqebbs,
		.db_off = p->db + RNIC_DB_BYTES,
		.send_cq = &q->cq,
		.plain = true,
	};
	int r = rnic_cq_init(&q->cq, &q->block, &cq);

	return r == 0 ? rnic_qp_init(&q->qp, &q->block, &qp) : r;
}

int plain_direct_new(struct rnic_plain **out, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr)
{
	const struct places p = places_of(attr);
	struct direct *q = calloc(1, sizeof(*q) + p.sq_wqebbs * sizeof(*q->sent));
	int r;

	if (!q)
		return -ENOMEM;
	r = rnic_block_init_in(attr->slot, &q->block, pd, arena, p.size, 0, attr->size, RNIC_BLOCK_LOCAL);
	if (r == 0)
		r = make_queues(q, &p, attr);
	if (r < 0) {
		plain_direct_free(&q->base);
		return r;
	}
	q->base = (struct rnic_plain){.direct = true, .qpn = q->qp.qpn, .mem = q->block.mem};
	q->mask = p.sq_wqebbs - 1;
	write_recvs(q, &attr->recvs, p.rq_entries);
	*out = &q->base;
	return 0;
}

void plain_direct_free(struct rnic_plain *p)
{
	struct direct *q = of(p);

	rnic_qp_deinit(&q->qp);
	rnic_cq_deinit(&q->cq);
	rnic_block_deinit(&q->block);
	free(q);
}

void plain_direct_stop(struct rnic_plain *q)
{
	rnic_qp_stop(&of(q)->qp);
}

struct rnic_qp *plain_direct_qp(struct rnic_plain *q)
{
	return &of(q)->qp;
}

/* ---- use -------------------------------------------------------------------------------------- */

void plain_direct_receive(struct rnic_plain *q, uint64_t to)
{
	rnic_qp_post_recvs(&of(q)->qp, (uint32_t)to);
}

void plain_direct_send(struct rnic_plain *p, const struct rnic_plain_send *s)
{
	struct direct *q = of(p);
	const bool write = s->opcode == WQE_OP_WRITE || s->opcode == WQE_OP_WRITE_IMM;
	const uint32_t i = q->written & q->mask;
	uint8_t *wqe = q->qp.sq + (size_t)i * WQE_BB, *sge = wqe + (write ? WQE_RDMA_SGE : WQE_SEND_SGE);

	if (write) {
		wqe_put64(wqe + WQE_RADDR, s->remote);
		wqe_put64(wqe + WQE_RKEY, (uint64_t)s->rkey << 32);
	}
	if (s->len) {
		wqe_put_sge(sge, s->len, q->block.lkey, q->block.iova + s->off);
		sge += WQE_DS;
	}
	if (s->more_len) {
		wqe_put_sge(sge, s->more_len, q->block.lkey, q->block.iova + s->more_off);
		sge += WQE_DS;
	}
	wqe_put32(wqe + WQE_OPMOD, (uint32_t)q->written << 8 | s->opcode);
	wqe_put32(wqe + WQE_QPN_DS, q->base.qpn << 8 | (uint32_t)(sge - wqe) / WQE_DS);
	wqe_put32(wqe + WQE_FLAGS - 3, s->solicited ? WQE_SOLICITED : 0);
	wqe_put32(wqe + WQE_IMM, s->imm);
	q->sent[i].tag = s->tag;
	q->written++;
}

void plain_direct_flush(struct rnic_plain *p, uint32_t number)
{
	struct direct *q = of(p);
	const uint32_t last = (uint32_t)(q->written - 1) & q->mask;

	if (q->written == q->qp.sq_posted)
		return;
	q->qp.sq[(size_t)last * WQE_BB + WQE_FLAGS] |= WQE_SIGNALLED;
	q->sent[last].number = number;
	rnic_qp_ring(&q->qp, q->written);
}

int plain_direct_poll(struct rnic_plain *p, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	struct direct *q = of(p);
	struct rnic_cqe cqe;
	int n = 0;

	for (; n < RNIC_PLAIN_BATCH && rnic_cq_poll(&q->cq, &cqe); n++) {
		c[n] = (struct rnic_plain_completion){.receive = cqe.receive,
			.syndrome = cqe.syndrome,
			.vendor = cqe.vendor,
			.bytes = cqe.length};
		if (!cqe.receive) {
			c[n].tag = q->sent[cqe.index & q->mask].tag;
			c[n].number = q->sent[cqe.index & q->mask].number;
		}
	}
	if (n)
		rnic_cq_update(&q->cq);
	return n;
}

void plain_direct_arm(struct rnic_plain *q)
{
	rnic_cq_arm(&of(q)->cq, false);
}
