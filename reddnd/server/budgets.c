/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server-impl.h"
#include "reddnd/session/silence.h"
#include "util/clock.h"

enum { LOOKS_PER_BUDGET = 4, LOOP_LOOK_US = 10000 };

static void look_later(struct server *sv, const struct session *s)
{
	const struct catalog_offload *conf = s->offload->conf;

	if (conf->time_budget)
		warden_look_within(&sv->warden, conf->time_budget / LOOKS_PER_BUDGET);
	if (conf->loop_budget)
		warden_look_within(&sv->warden, LOOP_LOOK_US);
}

static void look_at(struct server *sv, struct session *s, uint64_t now)
{
	struct verdict v;
	uint64_t done;

	rounds_count(sv, s);
	done = s->progress.done;
	if (session_exceeds_budget(s, now, &v)) {
		/* The loop may have gone on with others since the completions were taken, if this process was
		 * held up */
		rounds_drain(sv);
		rounds_count(sv, s);
		if (s->progress.done == done)
			rounds_judge(sv, s, &v);
	}
	if (s->ended)
		return;
	if (session_rest(s))
		watch_end(sv, s);
	else
		look_later(sv, s);
}

void watch_begin(struct server *sv, struct session *s)
{
	if (s->budgets.watched || s->budgets.resting ||
		!(s->offload->conf->time_budget || s->offload->conf->loop_budget))
		return;
	s->budgets.watched = true;
	TAILQ_INSERT_TAIL(&sv->watched, s, budgets.link);
	look_at(sv, s, clock_us());
}

void watch_end(struct server *sv, struct session *s)
{
	if (s->budgets.watched)
		TAILQ_REMOVE(&sv->watched, s, budgets.link);
	s->budgets.watched = false;
}

void watch_look(void *arg, uint64_t now)
{
	struct server *sv = arg;
	struct session *s, *next;

	rounds_drain(sv);
	for (s = TAILQ_FIRST(&sv->watched); s; s = next) {
		next = TAILQ_NEXT(s, budgets.link);
		look_at(sv, s, now);
	}
	rounds_collect(sv);
}
