/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop-queue.h - the queue of a loop without a bound (chain/ring/endless.h), beside the chain that calls it:
 * a managed QP that runs its ring, and a CQ. The block of the chain's queues holds its ring, lanes and
 * scratch, and the memory that chain and loop share.
 *
 * The queue writes to regions and wakes a queue of the chain, so it is stopped and destroyed before those of
 * the chain. Nobody takes its CQEs.
 *
 * It runs on credits, one for each half of a lap, which session_loop_feed() gives: CQEs of one more queue
 * pair, that does nothing but NOPs. Its doorbell record has how many were given, for the next daemon. So
 * loops that do not end run at the rate of the offload, and come to rest when this process does not run. The
 * connections of a session share the rate. Scheduling elements of the NIC do not do that
 * (docs/design/decisions.md).
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_LOOP_QUEUE_H
#define SESSION_LOOP_QUEUE_H

#include "reddnd/generation/queue-layout.h"
#include "reddnd/policy/rate.h"
#include "reddnd/program/program.h"
#include "reddnd/rnic/master-qp.h"

struct session_loop;

/** What the loops of a session's connections share. */
struct session_loops {
	struct rate rate;            /* of credits */
	struct rate_sharers sharers; /* loops that run: their requests are watched (server/timers.h) */
};

/** Makes the queues for a program that has such a loop, which runs at most @rate WQEs per second, and fills
 * the bucket @own, which loops of connections may share that join this one. @block must outlive it. Events of
 * the CQ and of the QP carry these cookies. */
int session_loop_new(struct session_loop **loop, struct session_loops *own, const struct program *p,
	uint64_t rate, const struct rnic_block *block, const struct queue_layout_loop *layout,
	uint64_t cq_cookie, uint64_t qp_cookie);
/**
 * Writes the ring for the chain in @env, whose queues and regions are known, and makes the memory that they
 * share the last region of the chain. Call it before the chain is armed.
 */
void session_loop_write(struct session_loop *l, struct chain_env *env);
/**
 * Goes on with the queues of a daemon before this one, in a block that was adopted, for the chain in @env: in
 * place of session_loop_write() and session_loop_start(). -EBADMSG: they have credits that nobody can have
 * given.
 */
int session_loop_resume(struct session_loop *l, struct chain_env *env);
/** Connects the queue and starts it: the ring waits for calls. @shared and @connections: as below. */
int session_loop_start(
	struct session_loop *l, struct session_loops *shared, unsigned connections, struct master_qp *master);

/* NULL is fine for all of these. */

/** Gives the credits that the rate in @shared, of one or more connections, allows: an even part to each of
 * the loops that run. Call it every 10 ms while the connection has requests outstanding. True: it got some.
 */
bool session_loop_feed(
	struct session_loop *l, struct session_loops *shared, unsigned connections, uint64_t now_us);

void session_loop_stop(struct session_loop *l);
void session_loop_destroy_qp(struct session_loop *l); /* it writes no CQE after this */
void session_loop_free(struct session_loop *l);

/** Its CQ, to look for errors. */
struct rnic_cq *session_loop_cq(struct session_loop *l);
uint32_t session_loop_qpn(const struct session_loop *l);

/** Iterations since it was started, half a lap of the ring (loop_info of the program) at a time. */
uint64_t session_loop_iterations(const struct session_loop *l);

#endif
