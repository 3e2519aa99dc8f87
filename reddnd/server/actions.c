/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/actions.h"

#include "reddnd/server/events.h"
#include "reddnd/server/live.h"
#include "reddnd/session/count.h"
#include "reddnd/session/limits.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <inttypes.h>

enum { MS = 1000 };

void actions_drop(struct dispatch *d, struct session *s)
{
	const bool holds = s->extents.at;

	timers_end(s);
	budgets_end(&d->budgets, s);
	session_end(s);
	pacer_forget(&d->shared->pacer, s);
	live_remove(d, s);
	if (holds)
		stores_wake(&d->shared->stores);
	TAILQ_INSERT_TAIL(&d->ended, s, link);
}

void actions_end(struct dispatch *d, struct session *s, enum reddn_wire_end reason, const char *text)
{
	struct session *first = s->first, *c;
	const struct end_reason_query query = {.session = session_number(first),
		.slot_addr = first->queues.env.slot_addr,
		.slot_rkey = first->queues.env.slot_rkey};
	struct verdict v;

	if (session_is_over(first))
		return;
	SESSION_CONNECTIONS(c, first)
	{
		c->engine->settle(c, &v);
		accounting_update(&d->shared->accounting, c);
		session_count_rest(c);
	}
	accounting_ended(&d->shared->accounting, first, report_level(reason) == LOG_WARNING);
	report_ended(d->shared->events, first, reason, text);
	end_reasons_add(&d->shared->record->end_reasons, first->client.address,
		d->shared->record->enforcement.source_bits, &query, reason, text);
	for (c = first->further; c; c = c->further)
		actions_drop(d, c);
	actions_drop(d, first);
}

void actions_limits_changed(struct dispatch *d, struct session *s)
{
	struct session *c;

	session_note(s);
	SESSION_CONNECTIONS(c, s)
	pacer_changed(&d->shared->pacer, c);
	timers_set(&d->timers, s);
}

static void throttle(struct dispatch *d, struct session *s, uint64_t rate, uint64_t until)
{
	uint64_t now = clock_us();

	session_throttle(s, rate, until, now);
	log_at(LOG_INFO, session_number(s), "throttled to %" PRIu64 " requests per second for %" PRIu64 " ms",
		rate, (until - now) / MS);
	actions_limits_changed(d, s);
}

static void unthrottle(struct dispatch *d, struct session *s)
{
	session_throttle(s, 0, 0, clock_us());
	log_at(LOG_INFO, session_number(s), "no longer throttled");
	actions_limits_changed(d, s);
}

void actions_take(struct dispatch *d, struct session *s, const struct action *action)
{
	switch (action->kind) {
	case ACTION_NONE:
		break;
	case ACTION_THROTTLE:
		throttle(d, s, action->rate, action->until_us);
		break;
	case ACTION_UNTHROTTLE:
		unthrottle(d, s);
		break;
	case ACTION_END:
		actions_end(d, s, action->reason, action->text);
		break;
	}
}

void actions_judge(struct dispatch *d, struct session *s, const struct verdict *v)
{
	const struct verdict_policy *policy = &s->offload->conf->on_error[v->kind];
	struct action action;

	if (session_is_over(s))
		return;
	accounting_verdict(s, v->kind);
	report_verdict(d->shared->events, s, v, policy->action);
	enforcement_judge(&d->shared->record->enforcement, policy, s->client.address, v, clock_us(), &action);
	actions_take(d, s->first, &action);
}

void actions_left(struct dispatch *d, struct session *s, const char *why)
{
	struct session *c;
	struct verdict v;

	SESSION_CONNECTIONS(c, s->first)
	if (c->engine->settle(c, &v))
		actions_judge(d, c, &v);
	actions_end(d, s, REDDN_WIRE_END_CLIENT, why);
}
