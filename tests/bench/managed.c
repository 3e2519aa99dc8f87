/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/managed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

void managed_need(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(-rc));
	exit(1);
}

void managed_open(struct managed *m, const struct managed_attr *wanted)
{
	enum { RECV = 16 }; /* bytes of an RQ entry */
	const uint32_t ring = 1u << wanted->log_ring, recvs = wanted->peer ? ring : 0;
	const uint32_t master_wq = wanted->data ? wanted->data : MANAGED_DATA;
	const uint32_t worker_wq = master_wq + ring * RNIC_WQEBB_BYTES;
	const uint32_t master_cqes =
		(worker_wq + recvs * RECV + ring * RNIC_WQEBB_BYTES + PAGE - 1) & ~(PAGE - 1);
	const uint32_t worker_cqes = master_cqes + ring * RNIC_CQE_BYTES;
	const uint32_t records = worker_cqes + ring * RNIC_CQE_BYTES, size = records + PAGE;
	struct rnic_cq_attr cq = {.cqes_off = master_cqes,
		.db_off = records + 128,
		.log_size = wanted->log_ring,
		.overrun_ignore = wanted->overrun_ignore};
	struct rnic_qp_attr attr = {.wq_off = master_wq,
		.sq_wqebbs = ring,
		.db_off = records,
		.send_cq = &m->master_cq,
		.recv_cq = &m->master_cq};

	m->ring = ring;
	managed_need(rnic_arena_new(&m->arena, size), "memory");
	managed_need(rnic_device_open_for_chains(&m->device, wanted->device, NULL), "no device");
	managed_need(rnic_block_init(&m->block, rnic_device_pd(m->device), m->arena, size, 0, master_cqes),
		"memory of queues");
	managed_need(rnic_cq_init(&m->master_cq, &m->block, &cq), "a CQ");
	cq.cqes_off = worker_cqes;
	cq.db_off = records + 192;
	managed_need(rnic_cq_init(&m->worker_cq, &m->block, &cq), "a CQ");
	managed_need(rnic_qp_init(&m->master, &m->block, &attr), "a QP");
	attr.wq_off = worker_wq;
	attr.rq_entries = recvs;
	attr.rq_stride = RECV;
	attr.db_off = records + 64;
	attr.send_cq = attr.recv_cq = &m->worker_cq;
	attr.managed = true;
	managed_need(rnic_qp_connect_self(&m->master, 16), "connecting");
	if (wanted->alone)
		return;
	managed_need(rnic_qp_init(&m->worker, &m->block, &attr), "a managed QP");
	if (!wanted->peer)
		managed_need(rnic_qp_connect_self(&m->worker, 16), "connecting");
}

void managed_close(struct managed *m)
{
	rnic_qp_deinit(&m->master);
	rnic_qp_deinit(&m->worker);
	rnic_cq_deinit(&m->master_cq);
	rnic_cq_deinit(&m->worker_cq);
	rnic_block_deinit(&m->block);
	rnic_device_close(m->device);
	rnic_arena_free(m->arena);
}

uint8_t *managed_wqe(const struct managed *m, struct rnic_qp *qp, uint16_t index, uint8_t opcode, uint8_t ds,
	uint8_t flags)
{
	uint8_t *w = qp->sq + (size_t)(index & (m->ring - 1)) * RNIC_WQEBB_BYTES;

	memset(w, 0, RNIC_WQEBB_BYTES);
	wqe_put16(w + WQE_INDEX, index);
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, qp->qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

void managed_ring(struct managed *m)
{
	struct rnic_qp *qp = &m->master;
	uint8_t last[RNIC_WQEBB_BYTES];

	/* rnic_qp_post() posts the last one and rings */
	qp->sq_posted--;
	memcpy(last, qp->sq + (size_t)(qp->sq_posted & (m->ring - 1)) * RNIC_WQEBB_BYTES, sizeof(last));
	rnic_qp_post(qp, last);
}
