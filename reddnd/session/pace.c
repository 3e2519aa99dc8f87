/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/pace.h"

#include "reddnd/util/clock.h"
#include "reddnd/util/log.h"

/* Between two looks at a session that waits */
enum { STEP_MIN_US = 250, STEP_MAX_US = 10000, STEPS_PER_WINDOW = 4, SECOND_US = 1000000 };

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool has_limit(const struct session *s)
{
	return s->rate.per_second || s->tenant->rate.per_second;
}

/* How far RECVs are posted ahead. The keeper of a recycled chain prepares a quarter of the slots at a time, and one of them may
 * always be under way: three are what can be had without waiting for it. */
static uint64_t window(const struct session *s)
{
	uint64_t w = (s->layout.recycled ? s->layout.slots / 4 * 3 : s->layout.slots) - 1;

	if (s->rate.per_second)
		w = min(w, s->rate.burst);
	if (s->tenant->rate.per_second)
		w = min(w, s->tenant->rate.burst);
	return w;
}

static uint64_t share(struct tenant *t, uint64_t now)
{
	uint64_t all = rate_available(&t->rate, now);

	if (all == UINT64_MAX || all == 0 || t->waiting < 2)
		return all;
	return all / t->waiting ? all / t->waiting : 1;
}

static void set_waiting(struct pacer *p, struct session *s, bool waiting)
{
	if (s->waiting == waiting)
		return;
	s->waiting = waiting;
	if (waiting) {
		s->tenant->waiting++;
		TAILQ_INSERT_TAIL(&p->waiting, s, waiting_link);
	} else {
		s->tenant->waiting--;
		TAILQ_REMOVE(&p->waiting, s, waiting_link);
	}
}

static void set_timer(struct pacer *p, uint64_t at)
{
	if (at >= p->due)
		return;
	p->due = at;
	if (sd_event_source_set_time(p->timer, at) < 0 ||
		sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT) < 0)
		log_error("the timer of credits cannot be set");
}

/* When to look again at a session that waits */
static uint64_t next_look(struct session *s, uint64_t now)
{
	uint64_t rate = s->rate.per_second ? s->rate.per_second : UINT64_MAX, step, delay;

	if (s->tenant->rate.per_second)
		rate = min(rate, s->tenant->rate.per_second);
	step = window(s) * SECOND_US / STEPS_PER_WINDOW / rate;
	step = step < STEP_MIN_US ? STEP_MIN_US : min(step, STEP_MAX_US);
	delay = rate_delay(&s->rate, 1, now);
	if (rate_delay(&s->tenant->rate, 1, now) > delay)
		delay = rate_delay(&s->tenant->rate, 1, now);
	return now + (delay > step ? delay : step);
}

/* Posts RECVs. Whether all of the window is posted now. */
static bool post(struct session *s, uint64_t now)
{
	uint64_t full = s->done + window(s), to = min(full, session_postable(s)), n;

	if (s->unsettled)
		session_post(s, s->posted);
	if (to > s->posted) {
		n = min(to - s->posted, min(rate_available(&s->rate, now), share(s->tenant, now)));
		if (n && session_post(s, s->posted + n) == 0) {
			rate_take(&s->rate, n);
			rate_take(&s->tenant->rate, n);
		}
	}
	return s->posted >= full;
}

static void step(struct pacer *p, struct session *s, uint64_t now)
{
	bool full = post(s, now);

	if (s->layout.recycled) {
		bool rests = s->done == s->seen;

		s->seen = s->done;
		if (full && rests) {
			session_arm_replies(s);
			p->count(p->arg, s);
		}
		full = full && rests && s->done == s->seen;
	}
	set_waiting(p, s, !full);
	if (!full)
		set_timer(p, next_look(s, now));
}

void pace_session(struct pacer *p, struct session *s)
{
	if (!s->paced)
		session_post(s, session_postable(s));
	else if (!s->waiting)
		step(p, s, clock_us());
}

void pace_changed(struct pacer *p, struct session *s)
{
	session_set_paced(s, has_limit(s));
	set_waiting(p, s, s->paced);
	if (s->paced)
		set_timer(p, clock_us() + STEP_MIN_US);
	else
		pace_session(p, s);
}

void pace_forget(struct pacer *p, struct session *s)
{
	set_waiting(p, s, false);
}

/* Each is looked at once: one that goes on waiting takes its place at the end again, and so nobody is always the first */
static int look(sd_event_source *source, uint64_t usec, void *arg)
{
	struct pacer *p = arg;
	struct session *last = TAILQ_LAST(&p->waiting, session_waiting), *s;
	uint64_t now = clock_us();

	(void)source;
	(void)usec;
	p->due = UINT64_MAX;
	while ((s = TAILQ_FIRST(&p->waiting))) {
		TAILQ_REMOVE(&p->waiting, s, waiting_link);
		TAILQ_INSERT_TAIL(&p->waiting, s, waiting_link);
		p->count(p->arg, s);
		step(p, s, now);
		if (s == last)
			break;
	}
	return 0;
}

int pace_init(struct pacer *p, sd_event *event, void (*count)(void *arg, struct session *s), void *arg)
{
	int r;

	*p = (struct pacer){.due = UINT64_MAX, .count = count, .arg = arg};
	TAILQ_INIT(&p->waiting);
	r = sd_event_add_time(event, &p->timer, CLOCK_MONOTONIC, 0, 1, look, p);
	return r < 0 ? r : sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
}

void pace_deinit(struct pacer *p)
{
	p->timer = sd_event_source_disable_unref(p->timer);
}
