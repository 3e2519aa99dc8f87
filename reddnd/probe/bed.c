/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, LOG_CQES = 6, PATIENCE_MS = 1000, RING = BED_WQEBBS * RNIC_WQEBB_BYTES };
enum { NCQS = BED_QUEUES + 1 };
enum { /* offsets in the block: doorbells, CQEs, queues (before the target's ring its RECVs), then memory */
	CQES = PAGE,
	RINGS = CQES + NCQS * PAGE,
	RING_SIZE = PAGE + RING,
	MEMORY = RINGS + BED_QUEUES * RING_SIZE,
	SIZE = MEMORY + BED_MEMORY,
};

static uint64_t iova_of(const struct bed *bed, const void *mem)
{
	return bed->block.iova + (uint64_t)((const uint8_t *)mem - (bed->block.mem + bed->block.code_off));
}

uint8_t *bed_at(const struct bed *bed, unsigned q, unsigned index)
{
	return bed->qp[q].sq + index % BED_WQEBBS * RNIC_WQEBB_BYTES;
}

uint8_t *bed_wqe(struct bed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	uint8_t *w = bed_at(bed, q, bed->posted[q]);

	memset(w, 0, (size_t)ds * WQE_DS);
	wqe_put16(w + WQE_INDEX, (uint16_t)bed->posted[q]);
	bed->posted[q] += (ds * WQE_DS + RNIC_WQEBB_BYTES - 1) / RNIC_WQEBB_BYTES;
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, bed->qp[q].qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

void bed_sync(struct bed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object)
{
	uint8_t *w = bed_wqe(bed, BED_WORK, opcode, 2, flags);

	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

void bed_sge(const struct bed *bed, uint8_t *at, const void *mem, uint32_t len)
{
	wqe_put32(at + WQE_SGE_LEN, len);
	wqe_put32(at + WQE_SGE_LKEY, bed->block.lkey);
	wqe_put64(at + WQE_SGE_ADDR, iova_of(bed, mem));
}

void bed_remote(const struct bed *bed, uint8_t *wqe, const void *mem)
{
	wqe_put64(wqe + WQE_RADDR, iova_of(bed, mem));
	wqe_put32(wqe + WQE_RKEY, bed->block.rkey);
}

static int init_cq(struct bed *bed, struct rnic_cq *cq, unsigned n)
{
	const struct rnic_cq_attr attr = {
		.cqes_off = CQES + n * PAGE,
		.db_off = (uint64_t)n * RNIC_DB_BYTES,
		.log_size = LOG_CQES,
		.overrun_ignore = true,
	};

	return rnic_cq_init(cq, &bed->block, &attr);
}

static int init_queue(struct bed *bed, unsigned q)
{
	bool receives = q == BED_TARGET;
	const struct rnic_qp_attr attr = {
		.wq_off = RINGS + q * RING_SIZE,
		.rq_entries = receives ? BED_RECVS : 0,
		.rq_stride = WQE_DS,
		.sq_wqebbs = BED_WQEBBS,
		.db_off = (uint64_t)(NCQS + q) * RNIC_DB_BYTES,
		.send_cq = &bed->cq[q],
		.recv_cq = receives ? &bed->recv_cq : NULL,
		.max_message = receives ? BED_MESSAGE : 0,
		.managed = true,
		.managed_rq = receives,
	};
	int r = init_cq(bed, &bed->cq[q], q);

	if (r == 0)
		r = rnic_qp_init(&bed->qp[q], &bed->block, &attr);
	return r == 0 ? rnic_qp_connect_self(&bed->qp[q], 4) : r;
}

int bed_init(struct bed *bed, struct master_qp *master)
{
	int r;

	*bed = (struct bed){.master = master};
	r = rnic_block_init(&bed->block, master->block.pd, master->block.arena, SIZE, RINGS, SIZE - RINGS);
	if (r == 0)
		r = init_cq(bed, &bed->recv_cq, BED_QUEUES);
	for (unsigned q = 0; q < BED_QUEUES && r == 0; q++)
		r = init_queue(bed, q);
	if (r == 0)
		bed->memory = bed->block.mem + MEMORY;
	return r;
}

void bed_deinit(struct bed *bed)
{
	for (unsigned q = 0; q < BED_QUEUES; q++)
		rnic_qp_deinit(&bed->qp[q]);
	for (unsigned q = 0; q < BED_QUEUES; q++)
		rnic_cq_deinit(&bed->cq[q]);
	rnic_cq_deinit(&bed->recv_cq);
	rnic_block_deinit(&bed->block);
}

int bed_start(struct bed *bed)
{
	return master_qp_enable(bed->master, bed->qp[BED_WORK].qpn, (uint16_t)bed->posted[BED_WORK]);
}

void bed_sleep(unsigned ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000l};

	nanosleep(&t, NULL);
}

bool bed_has_cqe(const struct rnic_cq *cq, unsigned n)
{
	struct rnic_cqe cqe;

	for (unsigned ms = 0; ms < PATIENCE_MS && !rnic_cq_peek(cq, n, &cqe); ms++)
		bed_sleep(1);
	return rnic_cq_peek(cq, n, &cqe);
}

int bed_errors(struct bed *bed, char *why, size_t size)
{
	const struct {
		const struct rnic_cq *cq;
		const char *name;
	} queues[] = {{&bed->cq[BED_WORK], "working"}, {&bed->cq[BED_TARGET], "target"},
		{&bed->recv_cq, "receive"}};
	struct rnic_cqe cqe;

	for (unsigned i = 0; i < COUNT(queues); i++)
		if (rnic_cq_find_error(queues[i].cq, &cqe)) {
			snprintf(why, size, "WQE %u of the %s queue: %s (%#x)", cqe.index, queues[i].name,
				rnic_syndrome_text(cqe.syndrome), cqe.vendor);
			return -EIO;
		}
	return 0;
}

int bed_failed(char *why, size_t size, const char *words)
{
	snprintf(why, size, "%s", words);
	return -EIO;
}
