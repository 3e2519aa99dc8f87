/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/timers.h"

#include "reddnd/session/count.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>

enum { ACCURACY_US = 10000, MS = 1000 };

/* UINT64_MAX: it is connected. The message that completes a connection can be lost; a client that sends a
 * request has completed it. */
static uint64_t connect_until(const struct timers *t, const struct session *s)
{
	return s->state == SESSION_ESTABLISHED || s->progress.done ? UINT64_MAX
								   : s->since + t->connect_timeout;
}

/* The first connection judges for all of them */
static uint64_t idle_until(const struct session *s)
{
	uint64_t limit = session_is_first(s) ? s->tenant->limits.idle_timeout : 0;

	return limit ? s->timer.idle.since + limit : UINT64_MAX;
}

static uint64_t throttle_until(const struct session *s)
{
	return s->limits.throttle.until ? s->limits.throttle.until : UINT64_MAX;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void timers_set(const struct timers *t, struct session *s)
{
	uint64_t at = min(min(connect_until(t, s), idle_until(s)), throttle_until(s));

	if (!s->timer.source)
		return;
	if (at == UINT64_MAX)
		sd_event_source_set_enabled(s->timer.source, SD_EVENT_OFF);
	else if (sd_event_source_set_time(s->timer.source, at) < 0 ||
		 sd_event_source_set_enabled(s->timer.source, SD_EVENT_ONESHOT) < 0)
		log_error("session %" PRIu64 ": its timer cannot be set", session_number(s));
}

static void end(struct action *action, enum reddn_wire_end reason)
{
	action->kind = ACTION_END;
	action->reason = reason;
}

void timers_check(const struct timers *t, struct session *s, uint64_t now, struct action *action)
{
	*action = (struct action){0};
	if (now >= connect_until(t, s)) {
		end(action, REDDN_WIRE_END_UNREACHABLE);
		snprintf(action->text, sizeof(action->text),
			"the client did not complete the connection within %" PRIu64 " ms",
			t->connect_timeout / MS);
	} else if (now >= idle_until(s) && session_is_idle(s, now, s->tenant->limits.idle_timeout)) {
		end(action, REDDN_WIRE_END_IDLE);
		snprintf(action->text, sizeof(action->text),
			"the client has asked for nothing for %" PRIu64 " ms",
			(now - s->timer.idle.since) / MS);
	} else if (now >= throttle_until(s)) {
		action->kind = ACTION_UNTHROTTLE;
	}
}

static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct session *s = arg;
	struct timers *t = s->timer.owner;

	(void)source;
	(void)usec;
	t->due(t->arg, s);
	return 0;
}

int timers_begin(struct timers *t, struct session *s)
{
	int r;

	s->timer.owner = t;
	s->timer.idle.since = s->since;
	r = sd_event_add_time(
		t->event, &s->timer.source, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_US, on_due, s);
	if (r < 0)
		return log_errno(r, "cannot make a timer");
	timers_set(t, s);
	return 0;
}

void timers_restart(const struct timers *t, struct session *s)
{
	s->timer.idle = (struct verdict_idle){.done = session_done(s), .since = clock_us()};
	timers_set(t, s);
}

void timers_end(struct session *s)
{
	s->timer.source = sd_event_source_disable_unref(s->timer.source);
}

enum { CHECKS_PER_BUDGET = 4, LOOP_CHECK_US = 10000 };

static int budgets_on_due(sd_event_source *source, uint64_t usec, void *arg)
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
	r = sd_event_add_time_relative(event, &b->timer, CLOCK_MONOTONIC, 0, 1, budgets_on_due, b);
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
