/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/bed.h"

#include <string.h>

enum { PAGE = 4096, WQEBBS = 512, BATCH = 256, LOG_CQES = 6, BYTES = 4096, RING = WQEBBS * RNIC_WQEBB_BYTES };
enum { /* offsets in the block: doorbells, CQEs, rings, then the bytes that are moved */
	CQES = PAGE,
	RINGS = CQES + LOAD_QUEUES * PAGE,
	MEMORY = RINGS + LOAD_QUEUES * RING,
	SIZE = MEMORY + 2 * BYTES,
};

_Static_assert(RING % PAGE == 0 && RNIC_CQE_BYTES << LOG_CQES == PAGE, "pages");

static int init_queue(struct load *load, unsigned i)
{
	const struct rnic_cq_attr cq = {.cqes_off = CQES + i * PAGE,
		.db_off = (uint64_t)i * RNIC_DB_BYTES,
		.log_size = LOG_CQES,
		.overrun_ignore = true};
	const struct rnic_qp_attr qp = {.wq_off = RINGS + i * RING,
		.sq_wqebbs = WQEBBS,
		.db_off = (uint64_t)(LOAD_QUEUES + i) * RNIC_DB_BYTES,
		.send_cq = &load->cq[i]};
	int r = rnic_cq_init(&load->cq[i], &load->block, &cq);

	if (r == 0)
		r = rnic_qp_init(&load->qp[i], &load->block, &qp);
	return r == 0 ? rnic_qp_connect_self(&load->qp[i], 4) : r;
}

int load_init(struct load *load, struct rnic_pd *pd, struct rnic_arena *arena)
{
	int r;

	*load = (struct load){0};
	r = rnic_block_init(&load->block, pd, arena, SIZE, RINGS, SIZE - RINGS);
	for (unsigned i = 0; i < LOAD_QUEUES && r == 0; i++)
		r = init_queue(load, i);
	return r;
}

void load_deinit(struct load *load)
{
	for (unsigned i = 0; i < LOAD_QUEUES; i++) {
		rnic_qp_deinit(&load->qp[i]);
		rnic_cq_deinit(&load->cq[i]);
	}
	rnic_block_deinit(&load->block);
}

static bool has_work(const struct load *load, unsigned i)
{
	struct rnic_cqe cqe;

	return load->batches[i] && !rnic_cq_peek(&load->cq[i], 2 * load->batches[i] - 1, &cqe);
}

uint32_t load_begin(const struct load *load)
{
	return 2 * (load->batches[0] - has_work(load, 0)) & 0xffffff;
}

/* READs and WRITEs of several sizes; the first and the last have a CQE */
static void write_wqe(struct load *load, unsigned q, unsigned n)
{
	const uint64_t at = load->block.iova + MEMORY - RINGS;
	const struct rnic_qp *qp = &load->qp[q];
	uint16_t index = (uint16_t)(qp->sq_posted + n);
	uint8_t *w = qp->sq + (size_t)(index % WQEBBS) * RNIC_WQEBB_BYTES;

	memset(w, 0, RNIC_WQEBB_BYTES);
	wqe_put16(w + WQE_INDEX, index);
	w[WQE_OPCODE] = n % 2 ? WQE_OP_WRITE : WQE_OP_READ;
	wqe_put32(w + WQE_QPN_DS, qp->qpn << 8 | 3);
	w[WQE_FLAGS] = n == 0 || n == BATCH - 1 ? WQE_SIGNALLED : 0;
	wqe_put64(w + WQE_RADDR, at + BYTES);
	wqe_put32(w + WQE_RKEY, load->block.rkey);
	wqe_put_sge(w + WQE_RDMA_SGE, (uint32_t)BYTES >> (n % 4 * 2), load->block.lkey, at);
}

void load_feed(struct load *load)
{
	for (unsigned q = 0; q < LOAD_QUEUES; q++) {
		if (has_work(load, q))
			continue;
		for (unsigned n = 0; n < BATCH; n++)
			write_wqe(load, q, n);
		rnic_qp_ring(&load->qp[q], (uint16_t)(load->qp[q].sq_posted + BATCH));
		load->batches[q]++;
	}
}

bool load_covers(const struct load *load, const struct rnic_cqe *cqe)
{
	struct rnic_cqe last;

	for (unsigned q = 0; q < LOAD_QUEUES; q++)
		if (load->batches[q] && (!rnic_cq_peek(&load->cq[q], 2 * load->batches[q] - 1, &last) ||
						last.timestamp >= cqe->timestamp))
			return true;
	return false;
}
