/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * managed.h - the queues of a benchmark of chains: a master queue pair, and unless it is alone a worker
 * queue pair that is managed. Each is connected to itself and has a CQ of its own. The block's key reaches
 * the program's data and, behind them, both send queues. A failure ends the program. Thread rules: one
 * thread.
 */
#ifndef TESTS_BENCH_MANAGED_H
#define TESTS_BENCH_MANAGED_H

#include "mlx5/wqe.h"
#include "reddnd/rnic/qp.h"

#include <stdbool.h>

enum { MANAGED_DATA = 4096 }; /* bytes for the program at the begin of the block, unless it wants others */

struct managed {
	struct rnic_arena *arena;
	struct rnic_device *device;
	struct rnic_block block;
	struct rnic_cq master_cq, worker_cq;
	struct rnic_qp master, worker;
	uint16_t worker_posted;
	unsigned ring; /* WQEBBs of a queue, and CQEs of a CQ */
};

/** Reports @what with the error @rc, a negative errno, and ends the program, unless @rc is 0. */
void managed_need(int rc, const char *what);

struct managed_attr {
	const char *device;  /* "": the only one */
	unsigned log_ring;   /* queues of 1 << log_ring entries, 64 at least */
	bool overrun_ignore; /* of both CQs */
	uint32_t data;       /* bytes for the program, a multiple of the page size; 0: MANAGED_DATA */
	bool peer;           /* the worker has RECVs, too, and the caller connects it */
	bool alone;          /* the master; .worker is all zero */
};

/** Opens the device and makes the queues. */
void managed_open(struct managed *m, const struct managed_attr *attr);
void managed_close(struct managed *m);

/** Clears WQE @index of @qp and writes its control segment. Returns the WQE. */
uint8_t *managed_wqe(const struct managed *m, struct rnic_qp *qp, uint16_t index, uint8_t opcode, uint8_t ds,
	uint8_t flags);

/** Rings one doorbell for all WQEs before master.sq_posted. */
void managed_ring(struct managed *m);

#endif
