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

/* How far RECVs are posted ahead. The keeper of a recycled chain prepares a quarter of the slots at a time, and one of them may
 * always be under way: three are what can be had without waiting for it. */
static uint64_t window(const struct session *s)
{
	uint64_t w = (s->layout.recycled ? s->layout.slots / 4 * 3 : s->layout.slots) - 1;

	if (s->rate.per_second)
		w = min(w, s->rate.burst);
	if (s->tenant->rate.per_second)
		w = min(w, s->tenant->rate.burst);
	if (s->bytes.per_second)
		w = min(w, s->bytes.burst / session_price(s));
	if (s->tenant->bytes.per_second)
		w = min(w, s->tenant->bytes.burst / session_price(s));
	return w;
}

/* Requests that a bucket has credits for, at @price each */
static uint64_t affordable(struct rate *r, uint64_t price, uint64_t now)
{
	uint64_t all = rate_available(r, now);

	return all == UINT64_MAX ? all : all / price;
}

static uint64_t share(const struct tenant *t, uint64_t all)
{
	if (all == UINT64_MAX || all == 0 || t->waiting < 2)
		return all;
	return all / t->waiting ? all / t->waiting : 1;
}

static uint64_t credits(struct session *s, uint64_t now)
{
	struct tenant *t = s->tenant;
	uint64_t price = session_price(s);

	return min(min(affordable(&s->rate, 1, now), share(t, affordable(&t->rate, 1, now))),
		min(affordable(&s->bytes, price, now), share(t, affordable(&t->bytes, price, now))));
}

static void pay(struct session *s, uint64_t requests)
{
	rate_take(&s->rate, requests);
	rate_take(&s->tenant->rate, requests);
	rate_take(&s->bytes, requests * session_price(s));
	rate_take(&s->tenant->bytes, requests * session_price(s));
}

/* The lowest of its limits, in requests per second, as far as it is known what a request costs in the end */
static uint64_t slowest(const struct session *s)
{
	const struct rate *const of[] = {&s->rate, &s->tenant->rate, &s->bytes, &s->tenant->bytes};
	uint64_t rate = UINT64_MAX;

	for (unsigned i = 0; i < (s->layout.recycled ? 4 : 2); i++)
		if (of[i]->per_second)
			rate = min(rate, of[i]->per_second / (i < 2 ? 1 : session_price(s)));
	return rate ? rate : 1;
}

static uint64_t until_credit(struct session *s, uint64_t now)
{
	uint64_t delay = 0, price = session_price(s);
	const uint64_t of[] = {rate_delay(&s->rate, 1, now), rate_delay(&s->tenant->rate, 1, now),
		rate_delay(&s->bytes, price, now), rate_delay(&s->tenant->bytes, price, now)};

	for (unsigned i = 0; i < 4; i++)
		delay = of[i] > delay ? of[i] : delay;
	return delay;
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
	uint64_t step = window(s) * SECOND_US / STEPS_PER_WINDOW / slowest(s), delay = until_credit(s, now);

	step = step < STEP_MIN_US ? STEP_MIN_US : min(step, STEP_MAX_US);
	return now + (delay > step ? delay : step);
}

/* Posts RECVs. Whether all of the window is posted now. */
static bool post(struct session *s, uint64_t now)
{
	uint64_t full = s->done + window(s), to = min(full, session_postable(s)), n;

	if (s->unsettled)
		session_post(s, s->posted);
	if (to > s->posted) {
		n = min(to - s->posted, credits(s, now));
		if (n && session_post(s, s->posted + n) == 0)
			pay(s, n);
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
	else if (!s->waiting || s->bytes.per_second || s->tenant->bytes.per_second)
		step(p, s,
			clock_us()); /* of one that waits, too: what was given back is there before its time */
}

void pace_changed(struct pacer *p, struct session *s)
{
	session_set_paced(s, session_is_limited(s));
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
