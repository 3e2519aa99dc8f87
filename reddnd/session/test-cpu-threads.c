/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that serve sessions: what a session does in a turn, and the queues that report, are the test's own.
 */

#include "tests/lib/cmocka.h"

#include "reddnd/session/cpu-internal.h"
#include "reddnd/session/cpu-threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 9, GOAL = 2000, YIELDS = 20, SESSIONS = MANY + 1 };

/* What a session does, in its .offload: nothing else of it is used */
struct work {
	atomic_uint left; /* turns with something to do */
	atomic_uint turns;
	atomic_ullong done;
	uint64_t reported;
	atomic_bool idles; /* instead: in each turn, without an end */
	atomic_bool rests; /* after each turn, until .rests_to */
	atomic_ullong rests_to;
};

struct rnic_plain_events {
	int fd;
};

static sd_event *event;
static struct cpu_threads *e;
static unsigned wanted;
static struct tenant tenants[2];
static atomic_uint last_of[2],
	in_a_row; /* turns of tenants; the longest run of one while the other is ready */
static atomic_bool both;
static atomic_ullong reports; /* the session that has an event; 0: none */
static int events_fd = -1;
static atomic_bool gone; /* the device: its descriptor stays readable, and cannot be read */
static atomic_uint errors;
static pthread_t event_loop;
static atomic_uint yields;                /* of other threads */
static atomic_uint idle_turns, most_idle; /* since the last yield; and before one, at most */

static struct work *work_of(const struct session *s)
{
	return (struct work *)(uintptr_t)s->offload;
}

/* ---- in place of the session, and of the device ---- */

static void count_turn(const struct session *s)
{
	unsigned t = s->tenant == &tenants[1], run = ++last_of[t];

	last_of[!t] = 0;
	if (both && run > in_a_row)
		in_a_row = run;
}

enum session_cpu_turn session_cpu_turn(struct session *s, uint64_t now_us)
{
	struct work *w = work_of(s);

	count_turn(s);
	w->turns++;
	if (w->idles) {
		idle_turns++;
		return SESSION_CPU_IDLE;
	}
	if (w->left == 0)
		return SESSION_CPU_ASLEEP;
	w->left--;
	w->done++;
	return w->rests ? SESSION_CPU_RESTING : SESSION_CPU_BUSY;
}

uint64_t session_cpu_resting(const struct session *s, uint64_t now_us)
{
	uint64_t to = work_of(s)->rests_to;

	return now_us < to ? to - now_us : 0;
}

bool session_cpu_changed(struct session *s)
{
	struct work *w = work_of(s);
	bool changed = w->done != w->reported;

	w->reported = w->done;
	return changed;
}

int rnic_plain_events_new(struct rnic_plain_events **out, struct rnic_device *dev)
{
	*out = calloc(1, sizeof(**out));
	assert_non_null(*out);
	events_fd = (*out)->fd = eventfd(0, EFD_NONBLOCK);
	return 0;
}

void rnic_plain_events_free(struct rnic_plain_events *events)
{
	close(events->fd);
	free(events);
}

int rnic_plain_events_fd(const struct rnic_plain_events *events)
{
	return events->fd;
}

int rnic_plain_events_next(struct rnic_plain_events *events, uint64_t *cookie)
{
	eventfd_t n;

	if (gone) {
		errors++;
		return -EIO;
	}
	if (eventfd_read(events->fd, &n) < 0)
		return 0;
	*cookie = atomic_exchange(&reports, 0);
	return *cookie != 0;
}

int sched_yield(void)
{
	if (!pthread_equal(pthread_self(), event_loop)) {
		unsigned n = atomic_exchange(&idle_turns, 0);

		most_idle = n > most_idle ? n : most_idle;
		yields++;
	}
	return (int)syscall(SYS_sched_yield);
}

/* ---- the event loop ---- */

static int on_wanted(void *arg)
{
	wanted++;
	return 0;
}

static int set_up(void **state)
{
	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(cpu_threads_new(&e, event, NULL, on_wanted, NULL), 0);
	cpu_threads_limit(e, 1);
	event_loop = pthread_self();
	wanted = 0;
	in_a_row = 0;
	both = false;
	return 0;
}

static int tear_down(void **state)
{
	cpu_threads_free(e);
	sd_event_unref(event);
	return 0;
}

static void begin(struct session *s, struct work *w, uint64_t id, unsigned tenant)
{
	struct rnic_plain_events *events;

	*s = (struct session){.id = id, .offload = (const struct offload *)w, .tenant = &tenants[tenant]};
	assert_int_equal(cpu_threads_choose(e, &events), 0);
	assert_int_equal(cpu_threads_add(e, s), 0);
}

/* As dispatch does: the call, all that there is, and the next call asked for. Returns what was done */
static uint64_t collect(void)
{
	struct session *s;
	uint64_t done = 0;

	do {
		while ((s = cpu_threads_next(e))) {
			uint64_t now = work_of(s)->done;

			done += now - s->progress.done;
			s->progress.done = now;
		}
	} while (!cpu_threads_arm(e));
	return done;
}

/* Until @n more have been done. Each of them is reported, however late */
static void collect_until(uint64_t n)
{
	uint64_t done = collect();

	while (done < n) {
		unsigned before = wanted;

		while (wanted == before)
			assert_true(sd_event_run(event, UINT64_MAX) >= 0);
		done += collect();
	}
	assert_int_equal(done, n);
}

static void test_counted(void **state)
{
	struct work works[SESSIONS] = {{.left = 0}};
	struct session sessions[SESSIONS];

	for (unsigned i = 0; i < SESSIONS; i++) {
		works[i].left = GOAL;
		begin(&sessions[i], &works[i], i + 1, i == MANY);
	}
	collect_until((uint64_t)GOAL * SESSIONS);
	for (unsigned i = 0; i < SESSIONS; i++) {
		assert_int_equal(sessions[i].progress.done, GOAL);
		cpu_threads_remove(e, &sessions[i]);
	}
	assert_null(cpu_threads_next(e));
}

/* One tenant has nine sessions, the other one: each has every other turn */
static void test_fair(void **state)
{
	struct work works[SESSIONS] = {{.left = 0}};
	struct session sessions[SESSIONS];

	for (unsigned i = 0; i < SESSIONS; i++) {
		works[i].left = UINT32_MAX;
		begin(&sessions[i], &works[i], i + 1, i == MANY);
	}
	while (works[MANY].turns == 0)
		sched_yield();
	last_of[0] = last_of[1] = 0;
	both = true;
	for (unsigned before = works[MANY].turns; works[MANY].turns - before < GOAL;)
		sched_yield();
	both = false;
	for (unsigned i = 0; i < SESSIONS; i++)
		cpu_threads_remove(e, &sessions[i]);
	assert_in_range(in_a_row, 1, 2); /* two: the test had counted anew between two turns */
	for (unsigned i = 0; i < MANY; i++)
		assert_in_range(works[i].turns, GOAL / MANY / 2, UINT32_MAX);
}

/* After it is removed nobody uses a session, at whatever time that is */
static void test_removed(void **state)
{
	struct work works[2] = {{.left = UINT32_MAX}, {.left = UINT32_MAX}};
	struct session stays;

	begin(&stays, &works[0], 1, 0);
	for (unsigned i = 0; i < GOAL; i++) {
		struct session *s = calloc(1, sizeof(*s));

		assert_non_null(s);
		begin(s, &works[1], 2 + i, 1);
		if (i % 2)
			collect();
		cpu_threads_remove(e, s);
		cpu_threads_remove(e, s);
		memset(s, 0xff, sizeof(*s));
		free(s);
	}
	cpu_threads_remove(e, &stays);
}

static void wake(uint64_t id)
{
	reports = id;
	eventfd_write(events_fd, 1);
}

/* It has no turn while it sleeps; and one for an event, or when it has rested */
static void test_sleeps(void **state)
{
	struct work w = {.left = 0};
	struct session s;

	begin(&s, &w, 7, 0);
	while (w.turns == 0)
		sched_yield();
	w.left = 1;
	assert_int_equal(collect(), 0);
	wake(8); /* of a session that is over */
	wake(7);
	collect_until(1);
	while (w.turns < 3)
		sched_yield();
	assert_int_equal(w.turns, 3); /* asleep, at work, asleep */

	w.rests = true;
	w.rests_to = UINT64_MAX;
	w.left = 5;
	wake(7);
	collect_until(1);
	assert_int_equal(w.left, 4);
	w.rests_to = 0;
	wake(7); /* an event does not end the rest; but the thread looks */
	collect_until(4);
	cpu_threads_remove(e, &s);
}

static void await_yields(void)
{
	for (unsigned before = yields; yields - before < YIELDS;)
		sched_yield();
}

/* Others may run when all sessions were idle, and one of them again; but not while there is work */
static void test_yields(void **state)
{
	enum { IDLE = 5 };
	struct work works[IDLE + 1] = {{.left = 0}};
	struct session sessions[IDLE + 1];
	unsigned before;

	yields = idle_turns = most_idle = 0;
	for (unsigned i = 0; i < IDLE; i++) {
		works[i].idles = true;
		begin(&sessions[i], &works[i], i + 1, 0);
		await_yields();
		assert_int_equal(most_idle, i + 2);
	}
	works[IDLE].left = UINT32_MAX;
	begin(&sessions[IDLE], &works[IDLE], IDLE + 1, 0);
	while (works[IDLE].turns == 0)
		sched_yield();
	before = yields;
	while (works[IDLE].turns < GOAL)
		sched_yield();
	assert_int_equal(yields, before);
	for (unsigned i = 0; i <= IDLE; i++)
		cpu_threads_remove(e, &sessions[i]);
}

/* The thread gets one error of a device that is gone, however often it sleeps and wakes up */
static void test_gone(void **state)
{
	struct work w = {.left = 0};
	struct session s;

	errors = 0;
	gone = true;
	eventfd_write(events_fd, 1);
	for (unsigned i = 0; i < MANY; i++) {
		unsigned before = w.turns;

		begin(&s, &w, 1, 0);
		while (w.turns == before || errors == 0)
			sched_yield();
		cpu_threads_remove(e, &s);
	}
	assert_int_equal(errors, 1);
	gone = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fair, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sleeps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_yields, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
