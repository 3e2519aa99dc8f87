/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-chain - keeps the NIC busy with chains. Run it with `softcx run`:
 *
 *	softcx-chain NIC-PID
 *
 * Each lookup is READ, fenced CAS, WAIT for it and SEND_EN on one queue, a WRITE on a managed queue, and a
 * WAIT for that. Prints one JSON object: WQEs per second of wall clock and of CPU time of process NIC-PID.
 */
#include "mlx5/wqe.h"
#include "reddnd/rnic/queue.h"
#include "tests/bench/nic-time.h"
#include "tests/lib/arg.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOG_RING = 12,
	RING = 1 << LOG_RING,
	BATCH = 128, /* lookups to a doorbell; a few of them fit in a ring */
	AHEAD = 4,
	WQES = 6,
	CODE = 0, /* offsets in the block */
	MASTER_WQ = 4096,
	WORKER_WQ = MASTER_WQ + RING * RNIC_WQEBB_BYTES,
	MASTER_CQES = WORKER_WQ + RING * RNIC_WQEBB_BYTES,
	WORKER_CQES = MASTER_CQES + RING * RNIC_CQE_BYTES,
	RECORDS = WORKER_CQES + RING * RNIC_CQE_BYTES,
	BLOCK = RECORDS + 4096,
};
static const double run_s = 2;

static struct rnic_arena *arena;
static struct rnic_device *device;
static struct rnic_block block;
static struct rnic_cq master_cq, worker_cq;
static struct rnic_qp master, worker;
static uint16_t worker_posted;

static void must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "softcx-chain: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void open_queues(void)
{
	struct rnic_qp_attr attr = {.wq_off = MASTER_WQ,
		.sq_wqebbs = RING,
		.db_off = RECORDS,
		.send_cq = &master_cq,
		.recv_cq = &master_cq};

	must(rnic_arena_new(&arena, BLOCK), "memory");
	must(rnic_device_open(&device, ""), "no device");
	must(rnic_block_init(&block, rnic_device_pd(device), arena, BLOCK, CODE, 4096), "memory of queues");
	must(rnic_cq_init(&master_cq, &block,
		     &(struct rnic_cq_attr){MASTER_CQES, RECORDS + 128, LOG_RING, .overrun_ignore = true}),
		"a CQ");
	must(rnic_cq_init(&worker_cq, &block,
		     &(struct rnic_cq_attr){WORKER_CQES, RECORDS + 192, LOG_RING, .overrun_ignore = true}),
		"a CQ");
	must(rnic_qp_init(&master, &block, &attr), "a QP");
	attr.wq_off = WORKER_WQ;
	attr.db_off = RECORDS + 64;
	attr.send_cq = attr.recv_cq = &worker_cq;
	attr.managed = true;
	must(rnic_qp_init(&worker, &block, &attr), "a managed QP");
	must(rnic_qp_connect_self(&master, 16), "connecting");
	must(rnic_qp_connect_self(&worker, 16), "connecting");
}

static void close_queues(void)
{
	rnic_qp_deinit(&master);
	rnic_qp_deinit(&worker);
	rnic_cq_deinit(&master_cq);
	rnic_cq_deinit(&worker_cq);
	rnic_block_deinit(&block);
	rnic_device_close(device);
	rnic_arena_free(arena);
}

/* ---- WQEs ------------------------------------------------------------------------------- */

static uint8_t *wqe(struct rnic_qp *qp, uint16_t index, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	uint8_t *w = qp->sq + (size_t)(index & (RING - 1)) * RNIC_WQEBB_BYTES;

	wqe_put16(w + WQE_INDEX, index);
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, qp->qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

static void sge(uint8_t *p, uint64_t off, uint32_t len)
{
	wqe_put32(p + WQE_SGE_LEN, len);
	wqe_put32(p + WQE_SGE_LKEY, block.lkey);
	wqe_put64(p + WQE_SGE_ADDR, block.iova + off);
}

static void remote(uint8_t *w, uint64_t off)
{
	wqe_put64(w + WQE_RADDR, block.iova + off);
	wqe_put32(w + WQE_RKEY, block.rkey);
}

static void sync_on(uint8_t *w, uint32_t index, uint32_t object)
{
	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

static void put_lookup(uint32_t n)
{
	uint16_t at = master.sq_posted;
	uint8_t *w;

	w = wqe(&master, at, WQE_OP_READ, 3, 0);
	remote(w, 64);
	sge(w + WQE_RDMA_SGE, 0, 16);
	w = wqe(&master, (uint16_t)(at + 1), WQE_OP_CAS, 4, WQE_SIGNALLED | WQE_FENCE);
	remote(w, 128);
	wqe_put64(w + WQE_ATOMIC, 0);
	wqe_put64(w + WQE_ATOMIC + 8, 1);
	sge(w + 48, 32, 8);
	sync_on(wqe(&master, (uint16_t)(at + 2), WQE_OP_WAIT, 2, 0), n & 0xffffff, master_cq.cqn);
	sync_on(wqe(&master, (uint16_t)(at + 3), WQE_OP_SEND_EN, 2, 0), (uint16_t)(worker_posted + 1),
		worker.qpn);
	w = wqe(&worker, worker_posted++, WQE_OP_WRITE, 3, WQE_SIGNALLED);
	remote(w, 256);
	sge(w + WQE_RDMA_SGE, 64, 64);
	/* rnic_qp_post() posts the last one and rings */
	sync_on(wqe(&master, (uint16_t)(at + 4), WQE_OP_WAIT, 2, 0), n & 0xffffff, worker_cq.cqn);
	master.sq_posted = (uint16_t)(at + 5);
}

static void post_batch(uint32_t first)
{
	uint8_t last[RNIC_WQEBB_BYTES];

	for (uint32_t i = 0; i < BATCH; i++)
		put_lookup(first + i);
	master.sq_posted--;
	memcpy(last, master.sq + (size_t)(master.sq_posted & (RING - 1)) * RNIC_WQEBB_BYTES, sizeof(last));
	rnic_qp_post(&master, last);
}

static uint64_t run(uint32_t *first, double seconds)
{
	double end = nic_time_now() + seconds;
	uint32_t posted = *first, done = *first;
	struct rnic_cqe cqe;
	bool more = true;

	while (more || done != posted) {
		for (; more && posted - done < AHEAD * BATCH; posted += BATCH)
			post_batch(posted);
		if (rnic_cq_peek(&worker_cq, done + BATCH - 1, &cqe)) {
			if (cqe.error)
				must(-EIO, rnic_syndrome_text(cqe.syndrome));
			done += BATCH;
		} else if (rnic_cq_find_error(&master_cq, &cqe)) {
			must(-EIO, rnic_syndrome_text(cqe.syndrome));
		}
		more = more && nic_time_now() < end;
	}
	done -= *first;
	*first = posted;
	return done;
}

int main(int argc, char **argv)
{
	struct nic_time t;
	uint32_t first = 0;
	uint64_t n;

	if (argc != 2) {
		fprintf(stderr, "usage: softcx-chain NIC-PID\n");
		return 2;
	}
	open_queues();
	run(&first, 0.2);
	t = nic_time_start((unsigned)arg_number(argv[1], UINT_MAX));
	n = run(&first, run_s) * WQES;
	nic_time_stop(&t);
	printf("{\"per_s\": %.0f, \"per_cpu_s\": %.0f}\n", (double)n / t.wall, (double)n / t.cpu);
	close_queues();
	return 0;
}
