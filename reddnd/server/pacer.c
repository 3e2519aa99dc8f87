/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/pacer.h"

#include "reddnd/session/count.h"
#include "reddnd/session/limits.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <assert.h>

/* From one step of a session that waits to the next */
enum { STEP_MIN_US = 250, STEP_MAX_US = 10000, STEPS_PER_WINDOW = 4, SECOND_US = 1000000 };

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct rate *limit(struct session *s, unsigned i)
{
	struct rate *const of[SESSION_LIMITS] = {
		&s->first->limits.rate, &s->tenant->rate, &s->first->limits.bytes, &s->tenant->bytes};

	return of[i];
}

/* Tokens that a request costs */
static uint64_t price(const struct session *s, unsigned i)
{
	return i < SESSION_BYTES ? 1 : session_price(s);
}

static bool is_of_tenant(unsigned i)
{
	return i == TENANT_REQUESTS || i == TENANT_BYTES;
}

static bool is_shared(const struct session *s, unsigned i)
{
	return is_of_tenant(i) || s->first->connections > 1;
}

/* ---- credits that sessions hold: paid for RECVs that no request has used ---- */

static void hold(struct session *s, unsigned i, uint64_t tokens)
{
	limit(s, i)->held += tokens - s->pacing.held[i];
	s->pacing.held[i] = tokens;
}

/* Counts again what @s holds when requests up to number @used have used their RECVs */
static void count_held(struct session *s, uint64_t used)
{
	for (unsigned i = 0; i < SESSION_LIMITS; i++) {
		uint64_t from = s->pacing.paid_from[i] > used ? s->pacing.paid_from[i] : used;

		hold(s, i, s->progress.posted > from ? (s->progress.posted - from) * price(s, i) : 0);
	}
}

static void posted_unpaid(struct session *s)
{
	for (unsigned i = 0; i < SESSION_LIMITS; i++)
		s->pacing.paid_from[i] = s->progress.posted;
	count_held(s, s->progress.done);
}

static void pay(struct session *s, uint64_t requests)
{
	for (unsigned i = 0; i < SESSION_LIMITS; i++)
		if (limit(s, i)->per_second)
			rate_take(limit(s, i), requests * price(s, i));
		else
			s->pacing.paid_from[i] = s->progress.posted;
	count_held(s, s->progress.done);
}

static void give_back(struct session *s)
{
	count_held(s, session_received(s));
	for (unsigned i = 0; i < SESSION_LIMITS; i++) {
		rate_give(limit(s, i), s->pacing.held[i]);
		hold(s, i, 0);
	}
}

/* ---- how many RECVs may be posted ---- */

static const struct rate_sharers *sharers_of(const struct session *s, unsigned i)
{
	return is_of_tenant(i) ? &s->tenant->sharers : &s->first->sharers;
}

/* Number of sessions that share the credits of limit @i: those that wait and have not had a turn yet */
static unsigned sharers(const struct session *s, unsigned i)
{
	const struct rate_sharers *of = sharers_of(s, i);

	return of->turns ? of->turns : of->waiting + (s->pacing.state != PACING_WAITING);
}

/*
 * RECVs that a shared limit allows to be posted ahead.
 *
 * Posted RECVs cannot be taken back, so a session that rests would keep credits from the others that share
 * the limit. So of the part of the burst that the others do not hold, it leaves a share to the next session:
 * alone it gets half. Together sessions never hold more than the burst, except for the one RECV that each of
 * them needs to go on. A session that waits and has used all of its RECVs gets its part of the credits that
 * accrued, even if they are more because this process was held up.
 */
static uint64_t ahead_of_shared(struct session *s, unsigned i, uint64_t now)
{
	struct rate *r = limit(s, i);
	uint64_t others = r->held - s->pacing.held[i], n = 1;

	if (sharers_of(s, i)->turns && s->progress.posted == s->progress.done)
		n = max(rate_available(r, now), r->burst) / price(s, i);
	if (others < r->burst)
		n = max(n, (r->burst - others) / price(s, i) / (1 + sharers(s, i)));
	return max(n, 1);
}

/* RECVs that a limit of this session alone allows to be posted ahead: a burst, or the credits if they are
 * more */
static uint64_t ahead_of_own(struct session *s, unsigned i, uint64_t now)
{
	struct rate *r = limit(s, i);

	return max(rate_available(r, now), r->burst) / price(s, i);
}

/* RECVs that are posted ahead. The recycler of a recycled chain prepares a section's slots at a time,
 * and one section may always be under way: the others can be used without waiting for it. */
static uint64_t window(struct session *s, uint64_t now)
{
	uint64_t w = s->queues.layout.slots -
		     (s->engine->is_silent ? chain_recycle_together(s->queues.layout.slots) : 0) - 1;

	for (unsigned i = 0; i < SESSION_LIMITS; i++)
		if (limit(s, i)->per_second)
			w = min(w, is_shared(s, i) ? ahead_of_shared(s, i, now) : ahead_of_own(s, i, now));
	return w;
}

/* Requests that the credits of limit @i allow */
static uint64_t all_of(struct session *s, unsigned i, uint64_t now)
{
	uint64_t all = rate_available(limit(s, i), now);

	return all == UINT64_MAX ? all : all / price(s, i);
}

/* Requests that limit @i allows this session: an even part of what is shared, rounded up */
static uint64_t affordable(struct session *s, unsigned i, uint64_t now)
{
	uint64_t all = all_of(s, i, now);

	if (all == UINT64_MAX || !is_shared(s, i))
		return all;
	return all / sharers(s, i) + (all % sharers(s, i) > 0);
}

/* Requests that it may take of shared credits without another session getting less */
static uint64_t even_part(struct session *s, uint64_t now)
{
	uint64_t n = UINT64_MAX;

	for (unsigned i = 0; i < SESSION_LIMITS; i++)
		if (is_shared(s, i))
			n = min(n, all_of(s, i, now) / sharers(s, i));
	return n;
}

static uint64_t credits(struct session *s, uint64_t now)
{
	uint64_t n = UINT64_MAX;

	for (unsigned i = 0; i < SESSION_LIMITS; i++)
		n = min(n, affordable(s, i, now));
	return n;
}

/* Notes that it waits for credits of the limits that allow at most @n requests; UINT64_MAX: for none */
static void await(struct session *s, uint64_t n, uint64_t now)
{
	for (unsigned i = 0; i < SESSION_LIMITS; i++) {
		bool awaits = n != UINT64_MAX && affordable(s, i, now) <= n;

		if (awaits == s->pacing.awaits[i])
			continue;
		s->pacing.awaits[i] = awaits;
		rate_await(limit(s, i), awaits);
	}
}

/* The lower of its limits in requests per second. Limits in bytes do not count: replies that are shorter than
 * they could be give credits back. */
static uint64_t slowest(struct session *s)
{
	uint64_t rate = UINT64_MAX;

	for (unsigned i = 0; i < SESSION_BYTES; i++)
		if (limit(s, i)->per_second)
			rate = min(rate, limit(s, i)->per_second);
	return rate ? rate : 1;
}

static uint64_t until_credit(struct session *s, uint64_t now)
{
	uint64_t delay = 0;

	for (unsigned i = 0; i < SESSION_LIMITS; i++) {
		uint64_t of = rate_delay(limit(s, i), price(s, i), now);

		delay = of > delay ? of : delay;
	}
	return delay;
}

static void set_waiting(struct pacer *p, struct session *s, bool waiting)
{
	if (!waiting)
		await(s, UINT64_MAX, 0);
	if (waiting == (s->pacing.state == PACING_WAITING))
		return;
	assert(session_is_paced(s));
	s->pacing.state = waiting ? PACING_WAITING : PACING_ON;
	if (waiting) {
		s->tenant->sharers.waiting++;
		s->first->sharers.waiting++;
		TAILQ_INSERT_TAIL(&p->waiting, s, pacing.link);
	} else {
		s->tenant->sharers.waiting--;
		s->first->sharers.waiting--;
		TAILQ_REMOVE(&p->waiting, s, pacing.link);
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

/* The time of the next step of a session that waits */
static uint64_t next_step(struct session *s, uint64_t now)
{
	uint64_t step = window(s, now) * SECOND_US / STEPS_PER_WINDOW / slowest(s);
	uint64_t delay = until_credit(s, now);

	step = step < STEP_MIN_US ? STEP_MIN_US : min(step, STEP_MAX_US);
	return now + (delay > step ? delay : step);
}

/* Posts RECVs. True if all of the window is posted now. */
static bool post(struct session *s, uint64_t now)
{
	uint64_t full, to, wanted, has = credits(s, now);

	count_held(s, s->progress.done);
	full = s->progress.done + window(s, now);
	to = min(full, s->engine->postable(s));
	if (s->pacing.unsettled)
		s->engine->post(s, s->progress.posted);
	wanted = to > s->progress.posted ? to - s->progress.posted : 0;
	/* Also if they are just enough: what a recycled session uses until the next step is not known before
	 */
	await(s, wanted >= has ? has : UINT64_MAX, now);
	wanted = min(wanted, has);
	if (wanted && s->engine->post(s, s->progress.posted + wanted) == 0)
		pay(s, wanted);
	return s->progress.posted >= full;
}

static void step(struct pacer *p, struct session *s, uint64_t now)
{
	bool full = post(s, now);

	if (s->engine->is_silent) {
		bool rests = s->progress.done == s->pacing.seen;

		s->pacing.seen = s->progress.done;
		if (full && rests) {
			s->engine->listen(s);
			p->count(p->arg, s);
		}
		full = full && rests && s->progress.done == s->pacing.seen;
	}
	set_waiting(p, s, !full);
	if (!full)
		set_timer(p, next_step(s, now));
}

void pacer_post(struct pacer *p, struct session *s)
{
	bool refunds = s->first->limits.bytes.per_second || s->tenant->bytes.per_second;

	if (!session_is_paced(s)) {
		s->engine->post(s, s->engine->postable(s));
		posted_unpaid(s);
	} else if (s->pacing.state == PACING_ON || refunds) {
		/* Credits that were given back can be used before its timer */
		step(p, s, clock_us());
	}
}

void pacer_changed(struct pacer *p, struct session *s)
{
	bool limited = session_is_limited(s), began = !session_is_paced(s);

	if (!limited)
		set_waiting(p, s, false);
	session_set_paced(s, limited);
	if (began)
		posted_unpaid(s);
	if (!limited) {
		pacer_post(p, s);
		return;
	}
	set_waiting(p, s, true);
	set_timer(p, clock_us() + STEP_MIN_US);
}

void pacer_forget(struct pacer *p, struct session *s)
{
	set_waiting(p, s, false);
	give_back(s);
	if (s->tenant->sharers.waiting)
		set_timer(p, clock_us());
}

/* One step of each session that waits. Credits that cannot be shared evenly go to the first ones, which move
 * to the end. */
static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct pacer *p = arg;
	struct session *last = TAILQ_LAST(&p->waiting, session_waiting), *s, *next;
	uint64_t now = clock_us(), before, even;

	(void)source;
	(void)usec;
	p->due = UINT64_MAX;
	TAILQ_FOREACH (s, &p->waiting, pacing.link) {
		s->tenant->sharers.turns = s->tenant->sharers.waiting;
		s->first->sharers.turns = s->first->sharers.waiting;
		p->count(p->arg, s);
		count_held(s, s->progress.done);
	}
	for (s = TAILQ_FIRST(&p->waiting); s; s = next) {
		next = s == last ? NULL : TAILQ_NEXT(s, pacing.link);
		before = s->progress.posted;
		even = even_part(s, now);
		step(p, s, now);
		s->tenant->sharers.turns--;
		s->first->sharers.turns--;
		if (s->progress.posted - before <= even || s->pacing.state != PACING_WAITING)
			continue;
		TAILQ_REMOVE(&p->waiting, s, pacing.link);
		TAILQ_INSERT_TAIL(&p->waiting, s, pacing.link);
	}
	return 0;
}

int pacer_init(struct pacer *p, sd_event *event, void (*count)(void *arg, struct session *s), void *arg)
{
	int r;

	*p = (struct pacer){.due = UINT64_MAX, .count = count, .arg = arg};
	TAILQ_INIT(&p->waiting);
	r = sd_event_add_time(event, &p->timer, CLOCK_MONOTONIC, 0, 1, on_due, p);
	return r < 0 ? r : sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
}

void pacer_deinit(struct pacer *p)
{
	p->timer = sd_event_source_disable_unref(p->timer);
}
