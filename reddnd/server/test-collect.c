/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of sessions that threads execute, and of one whose recycler gets sections. Sessions, queues and
 * threads are the test's own. */

#include "tests/lib/cmocka.h"

#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/engine.h"
#include "reddnd/session/session.h"

enum { EIGHTHS = 8, MUCH = 4, LITTLE = 1 };

static struct session session;
static struct generation generation;
static struct shared shared;
static struct dispatch dispatch;

static unsigned reports; /* turns that were reported and not taken; UINT32_MAX: there is always one */
static bool reported;    /* one, in this round */
static unsigned used;    /* eighths of the slots, in each round that takes something */
static unsigned rounds;
static unsigned armed;   /* the event of the threads, with nothing to take */
static bool scheduled;   /* the next round, by the timer */
static unsigned rearmed; /* the session, so often */
static unsigned behind;  /* its recycler is, until it was rearmed so often */
static unsigned asked;   /* for the event of its next reply */

/* ---- in place of threads and sessions ---- */

void stores_wake(struct stores *st)
{
}

struct session *cpu_threads_next(struct cpu_threads *e)
{
	if (reported || reports == 0)
		return NULL;
	reports -= reports != UINT32_MAX;
	reported = true;
	return &session;
}

bool cpu_threads_arm(struct cpu_threads *e)
{
	armed += reports == 0;
	return reports == 0;
}

const struct verdict *session_cpu_broken(const struct session *s)
{
	return NULL;
}

bool session_cpu_note(struct session *s, struct verdict *v)
{
	return false;
}

uint64_t session_count(struct session *s)
{
	return 1;
}

void session_destroy_qps(struct session *s)
{
	fail();
}

void session_set_state(struct session *s, enum session_state to)
{
	fail();
}

void session_free(struct session *s)
{
	fail();
}

/* ---- in place of completions, accounting and timers ---- */

/* A round looks for them once, after the threads */
int cq_pool_next(struct cq_pool *pool, struct rnic_cqe *cqe)
{
	return 0;
}

void cq_pool_update(struct cq_pool *pool)
{
	rounds++;
	reported = false;
}

int cq_pool_init(struct cq_pool *pool, struct rnic_device *dev, struct rnic_arena *arena)
{
	return 0;
}

int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v)
{
	fail();
	return 0;
}

unsigned session_used(const struct session *s)
{
	assert_ptr_equal(s, &session);
	return used;
}

int session_rearm(struct session *s, struct verdict *v)
{
	assert_ptr_equal(s, &session);
	rearmed++;
	session.recycler.is_behind = rearmed < behind;
	return 0;
}

void accounting_answered(struct accounting *a, struct session *s, uint64_t n)
{
}

void actions_judge(struct dispatch *d, struct session *s, const struct verdict *v)
{
	fail();
}

void pacer_post(struct pacer *p, struct session *s)
{
	assert_ptr_equal(s, &session);
}

void cq_pool_arm(struct cq_pool *pool)
{
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
	return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
	scheduled = enabled == SD_EVENT_ONESHOT;
	return 0;
}

/* ---- tests ---- */

static int setup(void **state)
{
	dispatch = (struct dispatch){.shared = &shared, .generation = &generation};
	TAILQ_INIT(&dispatch.ended);
	reports = used = rounds = armed = rearmed = behind = asked = 0;
	reported = scheduled = false;
	session = (struct session){0};
	collect_init(&dispatch);
	return 0;
}

/* Threads report @n turns, of a session that used so many eighths of its slots in each. */
static void report(unsigned n, unsigned eighths)
{
	reports = n;
	used = eighths;
	assert_int_equal(collect_executed(&dispatch), 0);
}

/* Of a session that is used much the next turn is an event again: nothing wakes the event loop before. */
static void test_used_much(void **state)
{
	report(1, MUCH);
	assert_int_equal(rounds, 1);
	assert_int_equal(rearmed, 1);
	assert_int_equal(armed, 1);
	assert_false(scheduled);
}

/* One that is used little is looked at when the next round is due, with others. */
static void test_used_little(void **state)
{
	report(1, LITTLE);
	assert_int_equal(rounds, 1);
	assert_int_equal(armed, 0);
	assert_true(scheduled);
}

/* What was reported meanwhile is taken at once. */
static void test_reported_meanwhile(void **state)
{
	report(3, MUCH);
	assert_int_equal(rounds, 3);
	assert_int_equal(rearmed, 3);
	assert_int_equal(armed, 1);
	assert_false(scheduled);
}

/* Threads that report without an end do not keep other events from their turn: the timer brings the rest. */
static void test_reported_without_end(void **state)
{
	report(UINT32_MAX, EIGHTHS);
	assert_in_range(rounds, 2, 64);
	assert_int_equal(rearmed, rounds);
	assert_int_equal(armed, 0);
	assert_true(scheduled);
}

/* The timer's round found something: another follows. If not, all events are asked for. */
static void test_due(void **state)
{
	reports = 1;
	used = LITTLE;
	assert_int_equal(collect_due(NULL, 0, &dispatch), 0);
	assert_true(scheduled);
	assert_int_equal(armed, 0);
	scheduled = false;
	assert_int_equal(collect_due(NULL, 0, &dispatch), 0);
	assert_false(scheduled);
	assert_int_equal(armed, 1);
}

static void ask(struct session *s)
{
	asked++;
}

/* No event reports that its recycler has come far enough: rounds go on until it has what is due. It was at
 * rest, and a store had extents for it. */
static void test_behind(void **state)
{
	static const struct session_engine engine = {.is_silent = true, .listen = ask};
	static uint64_t extent;

	session.engine = &engine;
	session.extents.at = &extent;
	behind = 4;
	collect_rearm_later(&dispatch, &session);
	for (unsigned n = 0; n == 0 || (scheduled && n < 20); n++) {
		scheduled = false;
		assert_int_equal(asked, 0);
		assert_int_equal(collect_due(NULL, 0, &dispatch), 0);
	}
	assert_false(scheduled);
	assert_int_equal(rearmed, behind);
	assert_int_equal(asked, 1);
	assert_false(session.recycler.watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_used_much, setup),
		cmocka_unit_test_setup(test_used_little, setup),
		cmocka_unit_test_setup(test_reported_meanwhile, setup),
		cmocka_unit_test_setup(test_reported_without_end, setup),
		cmocka_unit_test_setup(test_due, setup),
		cmocka_unit_test_setup(test_behind, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
