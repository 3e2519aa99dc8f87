/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * schedule.h - the queues of a request, and the order in which their work requests are executed. Private to
 * the executor.
 *
 * Queues run one after the other, each as far as it gets: of what a NIC may do, this is one way. Where no
 * request changes what decides about it (WAITs and SEND_ENs, lengths of WQEs, who has CQEs), the order is the
 * same for all requests, and found once; then WAITs and SEND_ENs have nothing left to do.
 */
#ifndef EXECUTOR_SCHEDULE_H
#define EXECUTOR_SCHEDULE_H

#include "reddnd/executor/trace.h"

/* Numbers of queue pairs and CQs: that of the queue, that of the CQ of RECVs, and of one that has all the
 * CQEs that a loop may wait for as credits */
enum { SCHEDULE_QUEUES = EXECUTOR_LOOP + 1, SCHEDULE_RECVS = SCHEDULE_QUEUES, SCHEDULE_CREDITS };

struct schedule_queue {
	uint8_t *ring;
	struct op *ops;    /* by WQEBB; NULL: of a loop */
	uint32_t wqebbs;   /* of it; 0: there is none */
	uint64_t at, upto; /* WQEBBs executed, enabled */
	uint32_t cqes;
};

struct schedule {
	struct op_state s;
	struct schedule_queue queue[SCHEDULE_QUEUES];
	unsigned nused; /* queues that there are, in the order in which they run */
	uint8_t used[SCHEDULE_QUEUES];
	unsigned turn; /* of these, the one that runs: a pause changes no order */
	unsigned start_queue;
	uint32_t start, loop_start; /* enabled at the beginning, of that queue and of the loop */
	uint64_t wqes;              /* of the request so far */
	struct executor_fault fault;
	/* the order of all requests, without what has nothing to do; .norder 0: there is none */
	struct op **order;
	unsigned norder, next;
	struct trace trace; /* of that order */
	uint64_t all;       /* work requests of a request */
	bool finding;
};

/** Finds the order, if there is one. What is written has been learned. @order: room for all work requests.
 * -ENOMEM. */
int schedule_find(struct schedule *c, struct op **order);
/** Makes the trace of the order, if there is one. The WQEs are as in the image. */
void schedule_trace(struct schedule *c);
/** After that: gives back memory that the trace does not need. */
void schedule_shrink(struct schedule *c);
/** A request begins. */
void schedule_begin(struct schedule *c);
/** Executes up to @wqes work requests. */
enum executor_result schedule_run(struct schedule *c, uint64_t wqes);

#endif
