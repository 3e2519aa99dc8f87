/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/collect.h"

#include "reddnd/server/actions.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/engine.h"

enum { ROUND_MIN_US = 25, ROUND_MAX_US = 200 };

int collect_init(struct dispatch *d)
{
	d->completions = (struct completions){.round_us = ROUND_MIN_US};
	TAILQ_INIT(&d->completions.finished);
	TAILQ_INIT(&d->completions.watched);
	return cq_pool_init(&d->completions.pool, d->dev, d->parts.arena);
}

/* ---- completions that are there ---- */

void collect_rearm_later(struct dispatch *d, struct session *s)
{
	if (!s->finished)
		TAILQ_INSERT_TAIL(&d->completions.finished, s, link);
	s->finished = true;
}

/* What threads have executed since the last time */
static void take_executed(struct dispatch *d)
{
	struct session *s;
	struct verdict note;

	while ((s = cpu_threads_next(d->threads))) {
		const struct verdict *v = session_cpu_broken(s);

		d->completions.taken++;
		accounting_answered(&d->shared->accounting, s, session_count(s));
		collect_rearm_later(d, s);
		if (session_cpu_note(s, &note))
			actions_judge(d, s, &note);
		if (v)
			actions_judge(d, s, v);
	}
}

/* What is in the CQs that unrolled sessions share */
static void take_replies(struct dispatch *d)
{
	struct completions *c = &d->completions;
	struct session *s = NULL;
	struct rnic_cqe cqe;
	struct verdict v;

	while (cq_pool_next(&c->pool, &cqe)) {
		uint64_t before;

		c->taken++;
		if (!s || s->queues.qpn != cqe.qpn)
			HASH_FIND(by_qpn, c->by_qpn, &cqe.qpn, sizeof(cqe.qpn), s);
		if (!s) /* flushed by a queue that has ended */
			continue;
		before = s->progress.done;
		if (session_completed(s, &cqe, &v)) {
			actions_judge(d, s, &v);
			s = NULL; /* it may have ended */
			continue;
		}
		accounting_answered(&d->shared->accounting, s, s->progress.done - before);
		collect_rearm_later(d, s);
	}
	cq_pool_update(&c->pool);
}

void collect_watch(struct dispatch *d, struct session *s)
{
	if (s->recycler.watched || !s->extents.at || !s->engine->listen || session_is_over(s))
		return;
	s->recycler.watched = true;
	TAILQ_INSERT_TAIL(&d->completions.watched, s, recycler.link);
}

/* True if requests are over that were not when it was looked at last, whoever has counted them, or the
 * recycler could not get a section then */
static bool has_more(struct dispatch *d, struct session *s)
{
	accounting_answered(&d->shared->accounting, s, session_count(s));
	if (s->progress.done == s->recycler.seen && !s->recycler.is_behind)
		return false;
	s->recycler.seen = s->progress.done;
	return true;
}

/* What the NIC has answered and will arm again. An event follows when the next reply comes to one of which
 * nothing is over */
static void take_recycled(struct dispatch *d)
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&d->completions.watched); s; s = next) {
		bool more = has_more(d, s);

		next = TAILQ_NEXT(s, recycler.link);
		if (!more) {
			s->engine->listen(s);
			more = has_more(d, s);
		}
		if (more) {
			d->completions.taken++;
			collect_rearm_later(d, s);
			continue;
		}
		TAILQ_REMOVE(&d->completions.watched, s, recycler.link);
		s->recycler.watched = false;
	}
}

void collect_drain(struct dispatch *d)
{
	take_executed(d);
	take_replies(d);
	take_recycled(d);
}

/* ---- a round ---- */

/* Arms what finished, and lets clients use it */
static void rearm_finished(struct dispatch *d)
{
	struct completions *c = &d->completions;
	struct session *s;
	struct verdict v;

	while ((s = TAILQ_FIRST(&c->finished))) {
		unsigned used = session_used(s);

		TAILQ_REMOVE(&c->finished, s, link);
		s->finished = false;
		c->used = used > c->used ? used : c->used;
		if (session_rearm(s, &v) > 0)
			actions_judge(d, s, &v);
		if (s->extents.at)
			stores_wake(&d->shared->stores);
		if (s->recycler.is_behind)
			collect_watch(d, s);
		if (!session_is_over(s))
			pacer_post(&d->shared->pacer, s);
	}
}

static void adapt_time(struct completions *c)
{
	if (c->used >= 4 && c->round_us > ROUND_MIN_US)
		c->round_us /= 2;
	else if (c->used < 2 && c->round_us < ROUND_MAX_US)
		c->round_us *= 2;
}

bool collect_round(struct dispatch *d)
{
	struct completions *c = &d->completions;
	bool any;

	c->taken = c->used = 0;
	collect_drain(d);
	any = c->taken > 0;
	rearm_finished(d);
	if (any)
		adapt_time(c);
	collect_reap(d);
	return any;
}

/* The QPN of a queue that is gone may come again with the next session: no CQE of it may be left by then */
void collect_reap(struct dispatch *d)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&d->ended))) {
		TAILQ_REMOVE(&d->ended, s, link);
		session_destroy_qps(s);
		collect_drain(d);
		session_set_state(s, SESSION_GONE);
		session_free(s);
	}
}

/* ---- when ---- */

int collect_schedule(struct dispatch *d)
{
	int r = sd_event_source_set_time_relative(d->round_timer, d->completions.round_us);

	return r < 0 ? r : sd_event_source_set_enabled(d->round_timer, SD_EVENT_ONESHOT);
}

int collect_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct dispatch *d = arg;

	(void)source;
	(void)usec;
	if (collect_round(d))
		return collect_schedule(d);
	cq_pool_arm(&d->completions.pool);
	cpu_threads_arm(d->threads);
	return collect_round(d) ? collect_schedule(d) : 0;
}

/* USED_MUCH: in eighths of the slots (session_used()); less is not worth an event for each time. ROUNDS:
 * before other events have their turn */
enum { USED_MUCH = 2, ROUNDS = 8 };

/* A session that is used much has a turn that reports it long before its slots are used up; between two of
 * them there is nothing to look at. Of others, whose turns may report a request each, rounds take some
 * together. */
int collect_executed(void *arg)
{
	struct dispatch *d = arg;

	for (unsigned n = 0; n < ROUNDS; n++) {
		collect_round(d);
		if (d->completions.used < USED_MUCH)
			break;
		if (cpu_threads_arm(d->threads))
			return 0;
	}
	return collect_schedule(d);
}
