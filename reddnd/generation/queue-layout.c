/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/queue-layout.h"

#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/recycle.h"
#include "reddnd/program/program.h"
#include "reddnd/rnic/qp.h"

#include <assert.h>
#include <errno.h>

enum { AHEAD_PER_SECOND = 25, AHEAD_MIN = 2, AHEAD_MAX = CHAIN_MAX_RING / 2, CREDITS_MIN = 64 };

struct loop_pace loop_pace_of(const struct program *p, uint64_t rate)
{
	uint64_t per_second = 2 * rate / p->loop_info.lap.wqes, ahead;

	per_second = per_second ? per_second : 1;
	ahead = per_second / AHEAD_PER_SECOND;
	ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead > AHEAD_MAX ? AHEAD_MAX : ahead;
	return (struct loop_pace){.per_second = per_second, .ahead = (uint32_t)ahead};
}

uint64_t loop_pace_credits(
	const struct loop_pace *pace, uint64_t ahead, unsigned connections, uint64_t tokens)
{
	uint64_t most = pace->ahead / connections, n;

	most = most < AHEAD_MIN ? AHEAD_MIN : most;
	n = ahead < most ? most - ahead : 0;
	return n < tokens ? n : tokens;
}

/* At most two iterations of the ring are enabled at a time, so an error flushes at most these */
bool loop_size_of(const struct program *p, uint64_t rate, struct loop_size *size)
{
	const struct chain_loop_info *info = &p->loop_info;

	if (!p->loop)
		return false;
	*size = (struct loop_size){
		.ring_wqebbs = p->loop_ring,
		.cqes = 2 * p->loop->nsteps + info->lap.copies + info->lap.adds + 2,
		.lanes = info->lanes,
		.scratch = info->scratch,
		.shared = p->shared_bytes,
		.credits = CREDITS_MIN,
	};
	while (size->credits < 2 * loop_pace_of(p, rate).ahead)
		size->credits *= 2;
	return true;
}

enum { SLOTS_MIN = 32, RECYCLED_SLOTS_MIN = 64, LOG_CQES_MIN = 4, RECYCLER_CQES = 64 };

unsigned queue_layout_slots(unsigned depth, bool recycled)
{
	unsigned slots = recycled ? RECYCLED_SLOTS_MIN : SLOTS_MIN;

	while (slots < 2 * depth)
		slots *= 2;
	return slots;
}

static uint64_t page_up(uint64_t v)
{
	const uint64_t page = 4096;

	return (v + page - 1) / page * page;
}

static uint64_t line_up(uint64_t v)
{
	return (v + RNIC_WQEBB_BYTES - 1) / RNIC_WQEBB_BYTES * RNIC_WQEBB_BYTES;
}

static void place_doorbells(struct queue_layout_qp *q, uint64_t *at)
{
	q->cq_db_off = *at;
	q->qp_db_off = *at + RNIC_DB_BYTES;
	*at += 2 * RNIC_DB_BYTES;
}

static void place_cqes(struct queue_layout_qp *q, unsigned log_size, uint64_t *at)
{
	q->cq_log_size = log_size;
	q->cqes_off = page_up(*at);
	*at = q->cqes_off + ((uint64_t)RNIC_CQE_BYTES << log_size);
}

/* @rq: bytes of the RQ, which comes first */
static void place_rings(struct queue_layout_qp *q, uint64_t rq, uint32_t wqebbs, uint64_t *at)
{
	q->wq_off = page_up(*at);
	q->ring_off = line_up(q->wq_off + rq);
	q->ring_wqebbs = wqebbs;
	*at = q->ring_off + (uint64_t)wqebbs * RNIC_WQEBB_BYTES;
}

/* Sizes the rings of the chain before the recycler, which depends on them */
static int size_rings(
	const struct chain_image *img, uint32_t max_wqebbs, struct queue_layout *l, uint32_t *rings)
{
	struct chain_env env = {.slots = l->slots};
	int r = 0;

	for (unsigned q = 0; q < img->nqueues; q++) {
		rings[q] = l->recycled ? chain_recycle_ring(img, q, l->slots)
				       : chain_ring_wqebbs(&img->queue[q], l->slots);
		env.queue[q].ring_wqebbs = rings[q];
		if (rings[q] == 0 || rings[q] > max_wqebbs)
			return -E2BIG;
	}
	if (l->recycled)
		r = chain_recycle_size(img, &env, &l->recycling);
	return r ? r : l->recycling.ring_wqebbs > max_wqebbs ? -E2BIG : 0;
}

static unsigned log_cqes(uint32_t cqes)
{
	unsigned log = LOG_CQES_MIN;

	while (1u << log < cqes)
		log++;
	return log;
}

/* Of a recycled session, so that the CQE of an error is still there when all is flushed that comes after it.
 * Where instances overlap, those of the lap go on with RECVs that are flushed. */
static uint32_t recv_cqes(const struct chain_image *img, const struct queue_layout *l)
{
	return l->recycled && chain_has_lap_end(img) ? 2 * l->slots : l->slots;
}

/* The same, and the last good ones before it, by which a session is counted (session_count()): a lap is
 * flushed at most, of which each WQE has a WQEBB at least */
static uint32_t reply_cqes(const struct chain_image *img, const struct queue_layout *l, uint32_t ring)
{
	return 2 * l->slots + (chain_has_lap_end(img) ? ring : 0);
}

/* What is flushed of a recycler that is not managed are all sections that it was given */
static uint32_t recycler_cqes(const struct chain_image *img, const struct queue_layout *l)
{
	return img->payload.max ? l->recycling.lap.wqes : RECYCLER_CQES;
}

/* The shared memory starts at a WQEBB boundary, because it is addressed like a region */
static void place_loop(struct queue_layout_loop *l, const struct loop_size *size, uint64_t *at)
{
	place_rings(&l->queue, 0, size->ring_wqebbs, at);
	place_rings(&l->credits, 0, size->credits, at);
	l->lanes_off = line_up(*at);
	l->scratch_off = line_up(l->lanes_off + size->lanes);
	l->shared_off = line_up(l->scratch_off + size->scratch);
	*at = l->shared_off + size->shared;
}

static void place_all_doorbells(
	const struct chain_image *img, const struct loop_size *loop, struct queue_layout *l, uint64_t *at)
{
	for (unsigned q = 0; q < img->nqueues; q++)
		place_doorbells(&l->queue[q], at);
	if (l->recycled) {
		place_doorbells(&l->recycler, at);
		place_doorbells(&l->replies, at);
	}
	if (loop) {
		place_doorbells(&l->loop.queue, at);
		place_doorbells(&l->loop.credits, at);
	}
}

int queue_layout_make(const struct chain_image *img, const struct loop_size *loop, bool recycled,
	unsigned slots, uint32_t max_wqebbs, struct queue_layout *l)
{
	uint32_t rings[CHAIN_MAX_QUEUES];
	uint64_t at = 0;
	int r;

	assert(slots >= 2 && (slots & (slots - 1)) == 0);
	*l = (struct queue_layout){.slots = slots, .rq_stride = chain_rq_stride(img), .recycled = recycled};
	r = size_rings(img, max_wqebbs, l, rings);
	if (r == 0 && loop && loop->ring_wqebbs > max_wqebbs)
		r = -E2BIG;
	if (r < 0)
		return r;
	/* The daemon reads the RECV CQE of every instance that it arms again; other CQs only count, and keep
	 * the CQE of an error, before those of what is flushed with it */
	for (unsigned q = 1; q < img->nqueues; q++)
		place_cqes(&l->queue[q], log_cqes(chain_ring_flushed(&img->queue[q], slots, rings[q])), &at);
	if (recycled) {
		place_cqes(&l->recycler, log_cqes(recycler_cqes(img, l)), &at);
		place_cqes(&l->replies, log_cqes(reply_cqes(img, l, rings[0])), &at);
	}
	if (loop) {
		place_cqes(&l->loop.queue, log_cqes(loop->cqes), &at);
		place_cqes(&l->loop.credits, log_cqes(0), &at);
	}
	if (!img->payload.max)
		place_cqes(&l->queue[0], log_cqes(recv_cqes(img, l)), &at);
	place_all_doorbells(img, loop, l, &at);
	/* In what is left of the page: work queues begin at pages */
	l->scratch_off = l->code_off = line_up(at);
	at = l->scratch_off + (uint64_t)slots * img->scratch_size;
	/* The CQE of a slot is where the chain looks for it: there are as many as slots */
	if (img->payload.max)
		place_cqes(&l->queue[0], (unsigned)__builtin_ctz(slots), &at);
	for (unsigned q = 0; q < img->nqueues; q++)
		place_rings(&l->queue[q], q == 0 ? (uint64_t)slots * l->rq_stride : 0, rings[q], &at);
	if (recycled) {
		place_rings(&l->recycler, 0, l->recycling.ring_wqebbs, &at);
		l->lanes_off = line_up(at);
		at = l->lanes_off + l->recycling.lanes;
	}
	if (loop)
		place_loop(&l->loop, loop, &at);
	l->code_size = at - l->code_off;
	l->size = page_up(at);
	return 0;
}
