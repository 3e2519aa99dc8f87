/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softcx-chain - keeps the NIC busy with chains. Run it with `softcx run`:
 *
 *	softcx-chain NIC-PID
 *
 * Each lookup is READ, fenced CAS, WAIT for it and SEND_EN on one queue, a WRITE on a managed queue, and a
 * WAIT for that. Prints one JSON object: WQEs per second of wall clock and of CPU time of process NIC-PID.
 */
#include "tests/bench/managed.h"
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
};
static const double run_s = 2;
static struct managed queues;

/* ---- WQEs ------------------------------------------------------------------------------- */

static void sge(uint8_t *p, uint64_t off, uint32_t len)
{
	wqe_put32(p + WQE_SGE_LEN, len);
	wqe_put32(p + WQE_SGE_LKEY, queues.block.lkey);
	wqe_put64(p + WQE_SGE_ADDR, queues.block.iova + off);
}

static void remote(uint8_t *w, uint64_t off)
{
	wqe_put64(w + WQE_RADDR, queues.block.iova + off);
	wqe_put32(w + WQE_RKEY, queues.block.rkey);
}

static void sync_on(uint8_t *w, uint32_t index, uint32_t object)
{
	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

static void put_lookup(uint32_t n)
{
	uint16_t at = queues.master.sq_posted;
	uint8_t *w;

	w = managed_wqe(&queues, &queues.master, at, WQE_OP_READ, 3, 0);
	remote(w, 64);
	sge(w + WQE_RDMA_SGE, 0, 16);
	w = managed_wqe(
		&queues, &queues.master, (uint16_t)(at + 1), WQE_OP_CAS, 4, WQE_SIGNALLED | WQE_FENCE);
	remote(w, 128);
	wqe_put64(w + WQE_ATOMIC, 0);
	wqe_put64(w + WQE_ATOMIC + 8, 1);
	sge(w + 48, 32, 8);
	sync_on(managed_wqe(&queues, &queues.master, (uint16_t)(at + 2), WQE_OP_WAIT, 2, 0), n & 0xffffff,
		queues.master_cq.cqn);
	sync_on(managed_wqe(&queues, &queues.master, (uint16_t)(at + 3), WQE_OP_SEND_EN, 2, 0),
		(uint16_t)(queues.worker_posted + 1), queues.worker.qpn);
	w = managed_wqe(&queues, &queues.worker, queues.worker_posted++, WQE_OP_WRITE, 3, WQE_SIGNALLED);
	remote(w, 256);
	sge(w + WQE_RDMA_SGE, 64, 64);
	sync_on(managed_wqe(&queues, &queues.master, (uint16_t)(at + 4), WQE_OP_WAIT, 2, 0), n & 0xffffff,
		queues.worker_cq.cqn);
	queues.master.sq_posted = (uint16_t)(at + 5);
}

static void post_batch(uint32_t first)
{
	for (uint32_t i = 0; i < BATCH; i++)
		put_lookup(first + i);
	managed_ring(&queues);
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
		if (rnic_cq_peek(&queues.worker_cq, done + BATCH - 1, &cqe)) {
			if (cqe.error)
				managed_need(-EIO, rnic_syndrome_text(cqe.syndrome));
			done += BATCH;
		} else if (rnic_cq_find_error(&queues.master_cq, &cqe)) {
			managed_need(-EIO, rnic_syndrome_text(cqe.syndrome));
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
	managed_open(
		&queues, &(struct managed_attr){.device = "", .log_ring = LOG_RING, .overrun_ignore = true});
	run(&first, 0.2);
	t = nic_time_start((unsigned)arg_number(argv[1], UINT_MAX));
	n = run(&first, run_s) * WQES;
	nic_time_stop(&t);
	printf("{\"per_s\": %.0f, \"per_cpu_s\": %.0f}\n", (double)n / t.wall, (double)n / t.cpu);
	managed_close(&queues);
	return 0;
}
