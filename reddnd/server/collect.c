/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/collect.h"

#include "reddnd/server/actions.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/session.h"

/* What threads have executed since the last time */
static void take_executed(struct dispatch *d)
{
	struct session *s;
	struct verdict note;

	while ((s = cpu_threads_next(d->threads))) {
		const struct verdict *v = session_cpu_broken(s);

		d->completions.taken++;
		accounting_answered(&d->shared->accounting, s, session_count(s));
		completions_rearm_later(&d->completions, s);
		if (session_cpu_note(s, &note))
			actions_judge(d, s, &note);
		if (v)
			actions_judge(d, s, v);
	}
}

/* Takes the completions that are there */
void collect_drain(struct dispatch *d)
{
	struct session *s;
	struct verdict v;

	take_executed(d);
	while (completions_take(&d->completions, &s, &v))
		actions_judge(d, s, &v);
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

/* A round: takes completions, arms again what finished, frees the sessions that are over. False: there were
 * no completions. */
bool collect_round(struct dispatch *d)
{
	struct session *s;
	struct verdict v;
	bool any, broke;

	completions_begin_round(&d->completions);
	collect_drain(d);
	any = d->completions.taken > 0;
	while ((s = completions_rearm(&d->completions, &broke, &v))) {
		if (broke)
			actions_judge(d, s, &v);
		if (!session_is_over(s))
			pacer_post(&d->shared->pacer, s);
	}
	if (any)
		completions_end_round(&d->completions);
	collect_reap(d);
	return any;
}

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
