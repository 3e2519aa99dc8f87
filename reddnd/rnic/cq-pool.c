/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/cq-pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* The device delays an event until there are so many CQEs or so much time has passed: a burst costs one event
 */
enum { PAGE = 4096, LOG_CQES_OF_A_PAGE = 6, MODERATE_CQES = 32, MODERATE_US = 50 };

static uint64_t bytes_of(unsigned log_cqes)
{
	return PAGE + ((uint64_t)RNIC_CQE_BYTES << log_cqes);
}

/* As small as a page allows */
static unsigned log_alone(uint32_t cqes)
{
	unsigned log = CQ_POOL_LOG_CQES;

	while (log > LOG_CQES_OF_A_PAGE && cqes <= 1u << (log - 1))
		log--;
	return log;
}

uint64_t cq_pool_bytes_alone(uint32_t cqes)
{
	return bytes_of(log_alone(cqes));
}

static int add(struct cq_pool *pool, unsigned log_cqes, struct cq_pool_queue **out)
{
	const struct rnic_cq_attr attr = {
		.cqes_off = PAGE,
		.db_off = 0,
		.log_size = (uint8_t)log_cqes,
		.cookie = CQ_POOL_COOKIE | pool->last_cookie,
		.moderate_count = MODERATE_CQES,
		.moderate_us = MODERATE_US,
	};
	struct cq_pool_queue *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	r = rnic_device_take_slot(pool->dev, LEDGER_OWN, &q->slot);
	if (r == 0)
		r = rnic_block_init_in(q->slot, &q->block, rnic_device_pd(pool->dev), pool->arena,
			bytes_of(log_cqes), PAGE, 0, RNIC_BLOCK_LOCAL);
	if (r == 0)
		r = rnic_cq_init(&q->cq, &q->block, &attr);
	if (r < 0) {
		rnic_block_deinit(&q->block);
		rnic_device_drop_slot(pool->dev, q->slot);
		free(q);
		return r;
	}
	rnic_cq_arm(&q->cq, false);
	q->cookie = CQ_POOL_COOKIE | pool->last_cookie++;
	TAILQ_INSERT_TAIL(&pool->cqs, q, link);
	*out = q;
	return 0;
}

static void drop(struct cq_pool *pool, struct cq_pool_queue *q)
{
	TAILQ_REMOVE(&pool->cqs, q, link);
	if (pool->at == q)
		pool->at = NULL;
	rnic_cq_deinit(&q->cq);
	rnic_block_deinit(&q->block);
	rnic_device_drop_slot(pool->dev, q->slot);
	free(q);
}

/* ---- life ---- */

/* The first one stays, so it is one that any session can use */
int cq_pool_init(struct cq_pool *pool, struct rnic_device *dev, struct rnic_arena *arena)
{
	struct cq_pool_queue *first;

	*pool = (struct cq_pool){.dev = dev, .arena = arena};
	TAILQ_INIT(&pool->cqs);
	return *rnic_device_caps(dev)->no_chains ? 0 : add(pool, CQ_POOL_LOG_CQES, &first);
}

void cq_pool_deinit(struct cq_pool *pool)
{
	struct cq_pool_queue *q;

	while ((q = TAILQ_FIRST(&pool->cqs)))
		drop(pool, q);
}

static bool has_room(const struct cq_pool_queue *q, uint32_t cqes)
{
	return !q->alone && cqes <= (1u << CQ_POOL_LOG_CQES) - q->charged;
}

int cq_pool_charge(struct cq_pool *pool, uint32_t cqes, bool alone, struct cq_pool_queue **cq)
{
	struct cq_pool_queue *q = NULL;
	int r;

	if (cqes > 1u << CQ_POOL_LOG_CQES)
		return -ENOSPC;
	if (!alone)
		TAILQ_FOREACH (q, &pool->cqs, link)
			if (has_room(q, cqes))
				break;
	if (!q) {
		r = add(pool, alone ? log_alone(cqes) : CQ_POOL_LOG_CQES, &q);
		if (r < 0)
			return r;
		q->alone = alone;
	}
	q->charged += cqes;
	*cq = q;
	return 0;
}

void cq_pool_refund(struct cq_pool *pool, struct cq_pool_queue *cq, uint32_t cqes)
{
	if (!cq)
		return;
	assert(cq->charged >= cqes);
	cq->charged -= cqes;
	if (cq->charged == 0 && cq != TAILQ_FIRST(&pool->cqs))
		drop(pool, cq);
}

int cq_pool_next(struct cq_pool *pool, struct rnic_cqe *cqe)
{
	struct cq_pool_queue *first = pool->at ? pool->at : TAILQ_FIRST(&pool->cqs), *q = first;

	if (!first)
		return 0;
	do {
		if (rnic_cq_poll(&q->cq, cqe)) {
			q->taken = q->unarmed = true;
			pool->at = q;
			return 1;
		}
		q = TAILQ_NEXT(q, link) ? TAILQ_NEXT(q, link) : TAILQ_FIRST(&pool->cqs);
	} while (q != first);
	return 0;
}

void cq_pool_update(struct cq_pool *pool)
{
	struct cq_pool_queue *q;

	TAILQ_FOREACH (q, &pool->cqs, link) {
		if (q->taken)
			rnic_cq_update(&q->cq);
		q->taken = false;
	}
}

void cq_pool_event(struct cq_pool *pool, uint64_t cookie)
{
	struct cq_pool_queue *q;

	TAILQ_FOREACH (q, &pool->cqs, link)
		if (q->cookie == cookie)
			q->unarmed = true;
}

void cq_pool_arm(struct cq_pool *pool)
{
	struct cq_pool_queue *q;

	TAILQ_FOREACH (q, &pool->cqs, link) {
		if (q->unarmed)
			rnic_cq_arm(&q->cq, false);
		q->unarmed = false;
	}
}
