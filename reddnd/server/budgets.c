/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/budgets.h"

#include "reddnd/session/count.h"

enum { CHECKS_PER_BUDGET = 4, LOOP_CHECK_US = 10000 };

static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct budgets *b = arg;

	(void)source;
	(void)usec;
	b->period_us = 0;
	b->due(b->arg);
	return 0;
}

int budgets_init(struct budgets *b, sd_event *event, void (*due)(void *arg), void *arg)
{
	int r;

	*b = (struct budgets){.due = due, .arg = arg};
	TAILQ_INIT(&b->watched);
	r = sd_event_add_time_relative(event, &b->timer, CLOCK_MONOTONIC, 0, 1, on_due, b);
	return r < 0 ? r : sd_event_source_set_enabled(b->timer, SD_EVENT_OFF);
}

void budgets_deinit(struct budgets *b)
{
	b->timer = sd_event_source_disable_unref(b->timer);
}

static void check_within(struct budgets *b, uint64_t us)
{
	if (b->period_us && b->period_us <= us)
		return;
	if (sd_event_source_set_time_relative(b->timer, us) >= 0 &&
		sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT) >= 0)
		b->period_us = us;
}

bool budgets_begin(struct budgets *b, struct session *s)
{
	if (s->budgets.watched || s->budgets.resting || !session_has_budgets(s))
		return false;
	s->budgets.watched = true;
	s->first->loops.sharers.waiting += s->queues.loop != NULL;
	TAILQ_INSERT_TAIL(&b->watched, s, budgets.link);
	return true;
}

void budgets_continue(struct budgets *b, struct session *s)
{
	const struct catalog_offload *conf = s->offload->conf;

	if (session_rest(s)) {
		budgets_end(b, s);
		return;
	}
	if (conf->time_budget)
		check_within(b, conf->time_budget / CHECKS_PER_BUDGET);
	if (s->queues.loop)
		check_within(b, LOOP_CHECK_US);
}

void budgets_fed(struct budgets *b, struct session *s)
{
	if (!s->budgets.watched)
		return;
	TAILQ_REMOVE(&b->watched, s, budgets.link);
	TAILQ_INSERT_TAIL(&b->watched, s, budgets.link);
}

void budgets_end(struct budgets *b, struct session *s)
{
	if (!s->budgets.watched)
		return;
	TAILQ_REMOVE(&b->watched, s, budgets.link);
	s->first->loops.sharers.waiting -= s->queues.loop != NULL;
	s->budgets.watched = false;
}
