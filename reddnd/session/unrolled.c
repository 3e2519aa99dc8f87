/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/engine.h"

#include "reddnd/generation/layouts.h"
#include "reddnd/session/count.h"
#include "reddnd/session/extents.h"
#include "reddnd/session/queues.h"

#include <errno.h>
#include <inttypes.h>

/* ---- beginning ---- */

/* Reserves the CQEs of its replies */
static int charge_pool(struct session *s, const struct session_parts *parts)
{
	struct session_queues *q = &s->queues;
	uint32_t cqes = layouts_reply_cqes(s->offload, q->layout.slots);
	int r = cq_pool_charge(parts->cq_pool, cqes, s->offload->cq_alone, &q->pool_cq);

	if (r < 0)
		return r;
	q->pool = parts->cq_pool;
	q->pool_cqes = cqes;
	return 0;
}

/* Arms the instances before number @to. The scatter list of an RQ entry stays, except for an extent */
static void arm(struct session *s, uint64_t to)
{
	const struct chain_image *img = s->offload->img;
	const struct chain_writer *writer = s->offload->program->writer;
	const uint64_t slots = s->queues.layout.slots, first_time = slots < to ? slots : to;
	uint64_t n = s->progress.armed;

	s->progress.armed = to;
	if (n < first_time)
		chain_arm(writer, &s->queues.env, n, first_time);
	if (first_time < to)
		chain_arm_again(writer, &s->queues.env, n < slots ? slots : n, to);
	for (; n < to && (s->extents.at || n < slots); n++)
		chain_format_recv(img, &s->queues.env, (unsigned)(n % slots));
}

static int unrolled_begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	uint64_t slots = s->queues.layout.slots;
	int r = charge_pool(s, parts);

	if (r == 0)
		r = session_queues_make(s, parts->arena, request);
	if (r < 0)
		return r;
	r = session_extents_begin(s);
	if (r < 0)
		return r;
	if (!session_extents_have_room(s))
		return -EAGAIN;
	arm(s, s->extents.at ? session_extents_take(s, 0, slots) : slots);
	/* a RECV needs the next instance as well, and the NIC begins with the head of the first one */
	if (s->progress.armed < 2)
		return -EAGAIN;
	return session_queues_start(s);
}

/* ---- RECVs ---- */

static uint64_t unrolled_postable(const struct session *s)
{
	return s->progress.armed - 1;
}

static int unrolled_post(struct session *s, uint64_t to)
{
	if (to <= s->progress.posted)
		return 0;
	rnic_qp_post_recvs(&s->queues.qp[0], (uint32_t)to);
	s->progress.posted = to;
	return 0;
}

static void unrolled_pace(struct session *s, bool paced)
{
	(void)s;
	(void)paced;
}

/* ---- requests that are over ---- */

/* The index of the last WQE of the reply of instance @n */
static uint16_t last_index(const struct session *s, uint64_t n)
{
	const struct chain_image *img = s->offload->img;

	return (uint16_t)(chain_end_index(img, &s->queues.env, 0, n) - s->queues.tail);
}

int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v)
{
	uint16_t last = last_index(s, s->progress.done);

	if (cqe->error) {
		session_fault(s, 0, cqe, v);
		return 1;
	}
	if (cqe->index != last) {
		verdict_set(
			v, VERDICT_QUEUE, true, "completion of WQE %u where %u was next", cqe->index, last);
		return 1;
	}
	session_served(s, s->progress.done, cqe);
	s->progress.done++;
	return 0;
}

/* session_completed() has counted them */
static void unrolled_count(struct session *s)
{
	(void)s;
}

static enum session_known unrolled_outcome(const struct session *s, uint64_t n, struct outcome *out)
{
	*out = session_outcome_at(s, n, s->queues.env.queue[0].ring);
	if (s->extents.at)
		session_extents_outcome(s, n, out);
	return SESSION_KNOWN;
}

static int unrolled_rearm(struct session *s, struct verdict *v)
{
	bool broken;

	arm(s, s->extents.at ? session_extents_next(s, UINT64_MAX, &broken, v)
			     : session_may_arm(s, &broken, v));
	return broken;
}

static void unrolled_free(struct session *s)
{
	session_queues_destroy(s);
	cq_pool_refund(s->queues.pool, s->queues.pool_cq, s->queues.pool_cqes);
}

const struct session_engine engine_unrolled = {
	.begin = unrolled_begin,
	.serve = session_queues_serve,
	.postable = unrolled_postable,
	.post = unrolled_post,
	.pace = unrolled_pace,
	.count = unrolled_count,
	.iterations = session_queues_iterations,
	.received = session_queues_received,
	.outcome = unrolled_outcome,
	.rearm = unrolled_rearm,
	.settle = session_queues_settle,
	.stop = session_queues_stop,
	.free = unrolled_free,
};
