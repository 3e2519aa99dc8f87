/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/audit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* The device holds an event back until so many CQEs are there or so much time has passed: a burst costs one */
enum { PAGE = 4096, MODERATE_CQES = 32, MODERATE_US = 50 };

static int add(struct audit *a, unsigned i, uint64_t cookie)
{
	const struct rnic_cq_attr attr = {
		.cqes_off = PAGE,
		.db_off = 0,
		.log_size = AUDIT_LOG_CQES,
		.cookie = cookie,
		.moderate_count = MODERATE_CQES,
		.moderate_us = MODERATE_US,
	};
	struct audit_cq *q = calloc(1, sizeof *q);
	int r;

	if (!q)
		return -ENOMEM;
	r = rnic_block_init(&q->block, rnic_device_pd(a->dev), a->arena,
		PAGE + (RNIC_CQE_BYTES << AUDIT_LOG_CQES), PAGE, 0);
	if (r == 0)
		r = rnic_cq_init(&q->cq, &q->block, &attr);
	if (r < 0) {
		rnic_block_deinit(&q->block);
		free(q);
		return r;
	}
	rnic_cq_arm(&q->cq, false);
	a->cqs[i] = q;
	return 0;
}

static void drop(struct audit *a, unsigned i)
{
	rnic_cq_deinit(&a->cqs[i]->cq);
	rnic_block_deinit(&a->cqs[i]->block);
	free(a->cqs[i]);
	a->cqs[i] = NULL;
}

int audit_init(struct audit *a, struct rnic_device *dev, struct rnic_arena *arena, uint64_t cookie)
{
	*a = (struct audit){.dev = dev, .arena = arena};
	return add(a, 0, cookie);
}

void audit_deinit(struct audit *a)
{
	for (unsigned i = 0; i < AUDIT_MAX_CQS; i++)
		if (a->cqs[i])
			drop(a, i);
}

int audit_charge(struct audit *a, uint32_t cqes, uint64_t cookie, struct audit_cq **cq)
{
	unsigned empty = AUDIT_MAX_CQS;
	int r;

	for (unsigned i = 0; i < AUDIT_MAX_CQS; i++) {
		if (!a->cqs[i]) {
			if (empty == AUDIT_MAX_CQS)
				empty = i;
		} else if (cqes <= (1u << AUDIT_LOG_CQES) - a->cqs[i]->charged) {
			a->cqs[i]->charged += cqes;
			*cq = a->cqs[i];
			return 0;
		}
	}
	if (empty == AUDIT_MAX_CQS || cqes > 1u << AUDIT_LOG_CQES)
		return -ENOSPC;
	r = add(a, empty, cookie);
	if (r < 0)
		return r;
	a->cqs[empty]->charged = cqes;
	*cq = a->cqs[empty];
	return 0;
}

void audit_refund(struct audit *a, struct audit_cq *cq, uint32_t cqes)
{
	if (!cq)
		return;
	assert(cq->charged >= cqes);
	cq->charged -= cqes;
	for (unsigned i = 1; i < AUDIT_MAX_CQS; i++)
		if (a->cqs[i] == cq && cq->charged == 0)
			drop(a, i);
}

int audit_next(struct audit *a, struct rnic_cqe *cqe)
{
	for (unsigned i = 0; i < AUDIT_MAX_CQS; i++)
		if (a->cqs[i] && rnic_cq_poll(&a->cqs[i]->cq, cqe))
			return 1;
	return 0;
}

void audit_update(struct audit *a)
{
	for (unsigned i = 0; i < AUDIT_MAX_CQS; i++)
		if (a->cqs[i])
			rnic_cq_update(&a->cqs[i]->cq);
}

void audit_arm(struct audit *a)
{
	for (unsigned i = 0; i < AUDIT_MAX_CQS; i++)
		if (a->cqs[i])
			rnic_cq_arm(&a->cqs[i]->cq, false);
}
