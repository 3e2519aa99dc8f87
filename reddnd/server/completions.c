/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/completions.h"

#include "reddnd/session/count.h"
#include "reddnd/session/unrolled.h"

enum { ROUND_MIN_US = 25, ROUND_MAX_US = 200 };

int completions_init(struct completions *c, struct rnic_device *dev, struct rnic_arena *arena,
	struct accounting *accounting)
{
	*c = (struct completions){.accounting = accounting, .round_us = ROUND_MIN_US};
	TAILQ_INIT(&c->finished);
	return cq_pool_init(&c->pool, dev, arena);
}

void completions_deinit(struct completions *c)
{
	cq_pool_deinit(&c->pool);
}

void completions_add(struct completions *c, struct session *s)
{
	HASH_ADD(by_qpn, c->by_qpn, queues.qpn, sizeof(s->queues.qpn), s);
}

void completions_remove(struct completions *c, struct session *s)
{
	HASH_DELETE(by_qpn, c->by_qpn, s);
	if (s->finished)
		TAILQ_REMOVE(&c->finished, s, link);
	s->finished = false;
}

void completions_rearm_later(struct completions *c, struct session *s)
{
	if (!s->finished)
		TAILQ_INSERT_TAIL(&c->finished, s, link);
	s->finished = true;
}

bool completions_take(struct completions *c, struct session **broken, struct verdict *v)
{
	struct session *s = NULL;
	struct rnic_cqe cqe;
	uint64_t before;

	while (cq_pool_next(&c->pool, &cqe)) {
		c->taken++;
		if (!s || s->queues.qpn != cqe.qpn)
			HASH_FIND(by_qpn, c->by_qpn, &cqe.qpn, sizeof(cqe.qpn), s);
		if (!s) /* flushed by a queue that has ended */
			continue;
		before = s->progress.done;
		if (session_completed(s, &cqe, v)) {
			*broken = s;
			return true;
		}
		accounting_answered(c->accounting, s, s->progress.done - before);
		completions_rearm_later(c, s);
	}
	cq_pool_update(&c->pool);
	return false;
}

struct session *completions_rearm(struct completions *c, bool *broke, struct verdict *v)
{
	struct session *s = TAILQ_FIRST(&c->finished);
	unsigned used;

	if (!s)
		return NULL;
	TAILQ_REMOVE(&c->finished, s, link);
	s->finished = false;
	used = session_used(s);
	if (used > c->used)
		c->used = used;
	*broke = session_rearm(s, v) > 0;
	return s;
}

void completions_begin_round(struct completions *c)
{
	c->taken = 0;
	c->used = 0;
}

void completions_end_round(struct completions *c)
{
	if (c->used >= 4 && c->round_us > ROUND_MIN_US)
		c->round_us /= 2;
	else if (c->used < 2 && c->round_us < ROUND_MAX_US)
		c->round_us *= 2;
}
