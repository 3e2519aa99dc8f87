/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/adoption.h"

#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/live.h"
#include "reddnd/server/report.h"
#include "reddnd/session/heir.h"
#include "reddnd/session/session.h"
#include "util/clock.h"

void adoption_add(struct dispatch *d, struct session *s)
{
	live_add(d, s);
	if (session_number(s) == s->id)
		accounting_adopted(s);
	accounting_update(&d->shared->accounting, s);
	if (live_begin(d, s) == 0)
		return;
	if (session_number(s) == s->id)
		actions_end(d, s, REDDN_WIRE_END_FAILED, "the server has no memory left");
	else /* the first one ends because it is not whole */
		actions_drop(d, s);
}

static void serve_adopted(struct dispatch *d, struct session *s)
{
	struct verdict v;

	if (!session_is_over(s) && session_look(s, &v))
		actions_judge(d, s, &v);
	collect_watch(d, s);
	if (session_is_over(s))
		return;
	pacer_changed(&d->shared->pacer, s);
	if (budgets_begin(&d->budgets, s))
		dispatch_check_budget(d, s, clock_us());
}

/* A connection joins the first one of its session again */
static void join_adopted(struct dispatch *d, struct session *s)
{
	struct session *first = live_find(d, session_number(s));

	if (first == s)
		return;
	/* it began no session: the end of that has been reported */
	if (!first || first->tenant != s->tenant) {
		actions_drop(d, s);
		return;
	}
	session_join(s, first);
	d->nsessions--;
}

/* What clients have of a session is all of it or nothing */
static void check_adopted(struct dispatch *d, struct session *s)
{
	if (session_is_over(s) || !session_is_first(s))
		return;
	if (session_is_whole(s))
		report_adopted(d->shared->events, s);
	else
		actions_end(d, s, REDDN_WIRE_END_SHUTDOWN,
			"the server was restarted, and a connection of the session has ended");
}

int adoption_serve(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		join_adopted(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		check_adopted(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		serve_adopted(d, s);
	collect_round(d);
	return collect_schedule(d);
}

void adoption_end(struct dispatch *d, uint64_t number, const struct end_reason_query *query,
	const uint8_t address[16], const char *peer, const char *why)
{
	report_ended_heir(d->shared->events, number, address, peer, why);
	end_reasons_add(&d->shared->record->end_reasons, address, d->shared->record->enforcement.source_bits,
		query, REDDN_WIRE_END_SHUTDOWN, why);
}
