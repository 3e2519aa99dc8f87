/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients get however late the timer is. The test has its own clock, and sessions whose clients take
 * what they can. */
#include "reddnd/server/pacer.h"
#include "reddnd/session/count.h"
#include "reddnd/session/limits.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SECONDS = 10, MS = 1000, S = 1000000, PRICE = 100, MANY_SLOTS = 65536, SHARERS = 3, MANY = 12 };

/* ---- stubs: the clock, the timer, sessions ---- */

static struct {
	uint64_t now, due; /* us */
	sd_event_time_handler_t handler;
	void *arg;
} timer;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	*t = (struct timespec){.tv_sec = (time_t)(timer.now / S), .tv_nsec = (long)(timer.now % S * 1000)};
	return 0;
}

int sd_event_add_time(sd_event *e, sd_event_source **source, clockid_t clock, uint64_t at, uint64_t accuracy,
	sd_event_time_handler_t handler, void *arg)
{
	*source = NULL;
	timer.handler = handler;
	timer.arg = arg;
	return 0;
}

int sd_event_source_set_time(sd_event_source *source, uint64_t at)
{
	timer.due = at;
	return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
	if (enabled == SD_EVENT_OFF)
		timer.due = UINT64_MAX;
	return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
	timer.due = UINT64_MAX;
	return NULL;
}

static uint64_t postable(const struct session *s)
{
	return s->progress.done + s->queues.layout.slots - 1;
}

static int post(struct session *s, uint64_t to)
{
	assert_true(to <= postable(s));
	if (to > s->progress.posted)
		s->progress.posted = to;
	return 0;
}

static uint64_t received(const struct session *s, uint64_t to)
{
	return s->progress.done;
}

static void pace(struct session *s, bool paced)
{
}

static void be_paced(struct session *s)
{
}

static const struct session_engine engines[2] = {
	{.postable = postable, .post = post, .received = received, .pace = pace},
	{.is_silent = true,
		.postable = postable,
		.post = post,
		.received = received,
		.pace = pace,
		.listen = be_paced},
};
static const struct offload offload = {.outcome.longest = PRICE};

/* ---- clients ---- */

struct bed {
	struct tenant tenant;
	struct session session[MANY];
	unsigned sessions;
	struct pacer pacer;
	bool asleep; /* the clients */
};

static void take(void *arg, struct session *s)
{
	const struct bed *b = arg;

	if (!b->asleep)
		s->progress.done = s->progress.posted;
}

static void begin(struct bed *b, bool recycled, unsigned sessions)
{
	timer.now = 5 * S;
	timer.due = UINT64_MAX;
	*b = (struct bed){.sessions = sessions};
	assert_int_equal(pacer_init(&b->pacer, NULL, take, b), 0);
	for (unsigned i = 0; i < sessions; i++)
		b->session[i] = (struct session){.first = &b->session[i],
			.connections = 1,
			.tenant = &b->tenant,
			.pacing.state = PACING_ON,
			.offload = &offload,
			.engine = &engines[recycled],
			.queues.layout.slots = MANY_SLOTS};
}

/* What their clients did brings sessions here that do not wait, and the timer others, @late after it was due
 */
static void run(struct bed *b, uint64_t us, uint64_t late)
{
	for (uint64_t end = timer.now + us; timer.now < end;) {
		for (unsigned i = 0; i < b->sessions; i++)
			if (b->session[i].pacing.state != PACING_WAITING &&
				b->session[i].progress.done < b->session[i].progress.posted) {
				take(b, &b->session[i]);
				pacer_post(&b->pacer, &b->session[i]);
			}
		if (timer.due == UINT64_MAX || timer.due + late > end) {
			timer.now = timer.due == UINT64_MAX && !b->asleep ? timer.now + MS : end;
			continue;
		}
		timer.now = (timer.due > timer.now ? timer.due : timer.now) + late;
		timer.due = UINT64_MAX;
		timer.handler(NULL, 0, timer.arg);
	}
}

static void start(struct bed *b)
{
	for (unsigned i = 0; i < b->sessions; i++)
		pacer_post(&b->pacer, &b->session[i]);
}

static void finish(struct bed *b)
{
	for (unsigned i = 0; i < b->sessions; i++)
		pacer_forget(&b->pacer, &b->session[i]);
	assert_int_equal(b->tenant.sharers.waiting, 0);
	assert_int_equal(b->tenant.rate.awaited, 0);
	pacer_deinit(&b->pacer);
}

static void within(uint64_t done, uint64_t rate, uint64_t burst, uint64_t late)
{
	/* At the beginning there is a burst; at the end what the last look did not give yet is lacking, or
	 * was not seen to be used */
	assert_in_range(done, rate * (SECONDS * S - 2 * (late + 10 * MS)) / S - 2, rate * SECONDS + burst);
}

/* ---- tests ---- */

static const uint64_t rates[] = {10, 100, 1000, 10000, 250000};
static const uint64_t lates[] = {0, 1, 3 * MS, 30 * MS, 99 * MS, 150 * MS, 400 * MS};

/* However late the timer is, and however small the burst: in the long run they have what they may have */
static void test_late(void **state)
{
	for (unsigned recycled = 0; recycled < 2; recycled++)
		for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
			for (size_t k = 0; k < sizeof(lates) / sizeof(*lates); k++)
				for (unsigned small = 0; small < 2; small++) {
					struct bed b;
					struct session *s = &b.session[0];

					begin(&b, recycled, 1);
					if (rates[i] * lates[k] / S >= MANY_SLOTS / 2)
						continue;
					rate_init(&s->limits.rate, rates[i],
						small ? (rates[i] + 999) / 1000 : 0, timer.now);
					start(&b);
					run(&b, SECONDS * S, lates[k]);
					within(s->progress.done, rates[i], s->limits.rate.burst, lates[k]);
					finish(&b);
				}
}

/* The same of what some sessions share, and none has more than another, but for what one finds at the
 * beginning. Or they are @connections of one session, whose limit it is. */
static void check_shared(bool connections)
{
	for (size_t i = 1; i < sizeof(rates) / sizeof(*rates); i++)
		for (size_t k = 0; k < sizeof(lates) / sizeof(*lates); k++) {
			uint64_t all = 0, least = UINT64_MAX, most = 0;
			struct bed b;
			struct rate *r = connections ? &b.session[0].limits.rate : &b.tenant.rate;

			begin(&b, false, SHARERS);
			if (rates[i] * lates[k] / S >= MANY_SLOTS / 2)
				continue;
			for (unsigned n = 1; connections && n < SHARERS; n++) {
				b.session[n].first = b.session;
				b.session[0].connections++;
			}
			rate_init(r, rates[i], 0, timer.now);
			start(&b);
			run(&b, SECONDS * S, lates[k]);
			for (unsigned n = 0; n < SHARERS; n++) {
				uint64_t done = b.session[n].progress.done;

				all += done;
				least = done < least ? done : least;
				most = done > most ? done : most;
			}
			within(all, rates[i], r->burst, lates[k]);
			assert_in_range(most - least, 0, 2 * r->burst + least / 50);
			finish(&b);
		}
}

static void test_shared(void **state)
{
	check_shared(false);
	check_shared(true);
}

/* Who pauses has two bursts afterwards, one posted and one in the bucket, and no more */
static void test_pause(void **state)
{
	for (unsigned recycled = 0; recycled < 2; recycled++)
		for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
			struct bed b;
			struct session *s = &b.session[0];
			uint64_t before;

			begin(&b, recycled, 1);
			rate_init(&s->limits.rate, rates[i], 0, timer.now);
			start(&b);
			run(&b, S, 0);
			b.asleep = true;
			run(&b, 3 * S, 0);
			before = s->progress.done;
			b.asleep = false;
			take(&b, s);
			pacer_post(&b.pacer, s);
			take(&b, s);
			assert_true(s->progress.done - before <= 2 * s->limits.rate.burst);
			run(&b, S, 0);
			assert_true(s->progress.done - before <= 2 * s->limits.rate.burst + rates[i]);
			finish(&b);
		}
}

/* A limit of its own does not make a session wait for what its tenant has plenty of */
static void test_awaits_what_lacks(void **state)
{
	struct bed b;
	struct session *s = &b.session[0];

	begin(&b, false, 1);
	rate_init(&s->limits.rate, 100, 0, timer.now);
	rate_init(&b.tenant.rate, 100000, 0, timer.now);
	start(&b);
	run(&b, S, 0);
	assert_int_equal(s->limits.rate.awaited, 1);
	assert_int_equal(b.tenant.rate.awaited, 0);
	/* nor does one that has no limit any more */
	rate_set(&s->limits.rate, 0, 0, timer.now);
	rate_set(&b.tenant.rate, 0, 0, timer.now);
	pacer_changed(&b.pacer, s);
	assert_int_equal(s->limits.rate.awaited, 0);
	finish(&b);
}

/* A tenant has as many credits after sessions that asked for nothing as before */
static void test_gives_back(void **state)
{
	struct bed b;

	for (unsigned recycled = 0; recycled < 2; recycled++) {
		begin(&b, recycled, MANY);
		b.asleep = true;
		rate_init(&b.tenant.rate, 1, 40, timer.now);
		rate_init(&b.tenant.bytes, 1, 30 * PRICE, timer.now);
		for (unsigned n = 0; n < MANY; n++) {
			struct session *s = &b.session[n];

			pacer_post(&b.pacer, s);
			assert_true(s->progress.posted > 1);
			s->progress.done = n == MANY / 2; /* one of them asks once */
			pacer_forget(&b.pacer, s);
		}
		assert_int_equal(rate_available(&b.tenant.rate, timer.now), 39);
		assert_int_equal(rate_available(&b.tenant.bytes, timer.now), 29 * PRICE);
		assert_int_equal(b.tenant.rate.held + b.tenant.bytes.held, 0);
		pacer_deinit(&b.pacer);
	}
}

/* RECVs that were posted before there was a limit are not paid, and nothing is given back for them */
static void test_gives_back_what_was_paid(void **state)
{
	struct bed b;
	struct session *s = &b.session[0];

	begin(&b, false, 1);
	b.asleep = true;
	s->pacing.state = PACING_NONE;
	pacer_post(&b.pacer, s);
	assert_int_equal(s->progress.posted, MANY_SLOTS - 1);
	rate_init(&b.tenant.rate, 1, 40, timer.now);
	rate_take(&b.tenant.rate, 40);
	pacer_changed(&b.pacer, s);
	pacer_forget(&b.pacer, s);
	assert_int_equal(rate_available(&b.tenant.rate, timer.now), 0);
	finish(&b);
}

/* However long sessions rest: together they hold a burst, or one RECV each; and when all but one go on
 * resting, that one gets the rate of the tenant */
static void test_hoards(void **state)
{
	enum { RATE = 1000 };
	const uint64_t bursts[] = {1, 5, 100};

	for (unsigned recycled = 0; recycled < 2; recycled++)
		for (size_t i = 0; i < sizeof(bursts) / sizeof(*bursts); i++) {
			uint64_t unused = 0;
			struct bed b;

			begin(&b, recycled, MANY);
			b.asleep = true;
			rate_init(&b.tenant.rate, RATE, bursts[i], timer.now);
			start(&b);
			run(&b, 30 * S, 0);
			for (unsigned n = 0; n < MANY; n++) {
				assert_true(b.session[n].progress.posted > 0);
				unused += b.session[n].progress.posted;
			}
			assert_true(unused <= bursts[i] + MANY);
			assert_int_equal(unused, b.tenant.rate.held);
			for (unsigned t = 0; t < RATE; t++) {
				struct session *last = &b.session[MANY - 1];

				run(&b, MS, 0);
				last->progress.done = last->progress.posted;
				pacer_post(&b.pacer, last);
			}
			assert_true(b.session[MANY - 1].progress.done >= RATE * 9 / 10);
			for (unsigned n = 0; n < MANY; n++)
				pacer_forget(&b.pacer, &b.session[n]);
			assert_int_equal(b.tenant.rate.held, 0);
			pacer_deinit(&b.pacer);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_awaits_what_lacks),
		cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_gives_back_what_was_paid),
		cmocka_unit_test(test_hoards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
