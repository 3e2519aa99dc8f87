/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/lib/cmocka.h"

#include "reddnd/util/worker.h"
#include "util/array.h"

#include <errno.h>
#include <pthread.h>

enum { THREADS = 4, RUNNING = 2, PENDING = 5 };

static const struct worker_limits limits = {.threads = THREADS, .running = RUNNING, .pending = PENDING};

/* A job stays at its gate until the test opens it */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	unsigned inside;
};

struct task {
	struct worker_job job;
	struct gate *gate;
	unsigned ran, done;
	pthread_t thread;
};

static struct gate gate_a = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};
static sd_event *event;
static struct worker *w;
static const char a[] = "a", b[] = "b";

static void run(struct worker_job *job)
{
	struct task *t = (struct task *)job;

	t->ran++;
	t->thread = pthread_self();
	if (!t->gate)
		return;
	pthread_mutex_lock(&t->gate->lock);
	t->gate->inside++;
	pthread_cond_broadcast(&t->gate->changed);
	while (!t->gate->open)
		pthread_cond_wait(&t->gate->changed, &t->gate->lock);
	pthread_mutex_unlock(&t->gate->lock);
}

static void done(struct worker_job *job)
{
	struct task *t = (struct task *)job;

	t->done++;
}

static struct task task(const void *key, struct gate *gate)
{
	return (struct task){.job = {.key = key, .run = run, .done = done}, .gate = gate};
}

static void await_inside(unsigned n)
{
	pthread_mutex_lock(&gate_a.lock);
	while (gate_a.inside < n)
		pthread_cond_wait(&gate_a.changed, &gate_a.lock);
	pthread_mutex_unlock(&gate_a.lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&gate_a.lock);
	gate_a.open = true;
	pthread_cond_broadcast(&gate_a.changed);
	pthread_mutex_unlock(&gate_a.lock);
}

static void await_done(struct task *t)
{
	while (!t->done)
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
}

static int setup(void **state)
{
	gate_a.open = false;
	gate_a.inside = 0;
	return sd_event_new(&event) < 0 || worker_new(&w, event, "test", &limits) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	if (w)
		worker_free(w);
	w = NULL;
	event = sd_event_unref(event);
	return 0;
}

static void elsewhere(void **state)
{
	struct task t = task(a, NULL);

	assert_int_equal(worker_submit(w, &t.job), 0);
	await_done(&t);
	assert_int_equal(t.ran, 1);
	assert_int_equal(t.done, 1);
	assert_false(t.job.canceled);
	assert_false(pthread_equal(t.thread, pthread_self()));
}

/* Jobs of one key that wait do not keep others waiting, and no more than PENDING are taken */
static void one_key_is_bounded(void **state)
{
	struct task slow[PENDING + 1], other = task(b, NULL);

	for (unsigned i = 0; i < COUNT(slow); i++)
		slow[i] = task(a, &gate_a);
	for (unsigned i = 0; i < PENDING; i++)
		assert_int_equal(worker_submit(w, &slow[i].job), 0);
	assert_int_equal(worker_submit(w, &slow[PENDING].job), -EBUSY);
	await_inside(RUNNING);
	assert_int_equal(worker_submit(w, &other.job), 0);
	await_done(&other);
	for (unsigned i = RUNNING; i < PENDING; i++)
		assert_int_equal(slow[i].done, 0);
	open_gate();
	for (unsigned i = 0; i < PENDING; i++)
		await_done(&slow[i]);
	assert_int_equal(slow[PENDING].ran, 0);
	assert_int_equal(worker_submit(w, &slow[PENDING].job), 0);
	await_done(&slow[PENDING]);
}

/* Nor do those of one kind keep another kind of the same key waiting */
static void one_kind_is_bounded(void **state)
{
	struct task slow[PENDING], other = task(a, NULL);

	other.job.kind = 1;
	for (unsigned i = 0; i < PENDING; i++) {
		slow[i] = task(a, &gate_a);
		assert_int_equal(worker_submit(w, &slow[i].job), 0);
	}
	await_inside(RUNNING);
	assert_int_equal(worker_submit(w, &other.job), 0);
	await_done(&other);
	open_gate();
	for (unsigned i = 0; i < PENDING; i++)
		await_done(&slow[i]);
}

static void *open_later(void *arg)
{
	await_inside(RUNNING);
	open_gate();
	return NULL;
}

/* What runs is waited for, what waits is canceled; each is done once */
static void freed_with_jobs(void **state)
{
	struct task t[PENDING];
	unsigned canceled = 0;
	pthread_t opener;

	for (unsigned i = 0; i < PENDING; i++) {
		t[i] = task(a, &gate_a);
		assert_int_equal(worker_submit(w, &t[i].job), 0);
	}
	await_inside(RUNNING);
	assert_int_equal(pthread_create(&opener, NULL, open_later, NULL), 0);
	worker_free(w);
	w = NULL;
	pthread_join(opener, NULL);
	for (unsigned i = 0; i < PENDING; i++) {
		assert_int_equal(t[i].done, 1);
		assert_int_equal(t[i].job.canceled, !t[i].ran);
		canceled += t[i].job.canceled;
	}
	assert_true(canceled <= PENDING - RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(one_key_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(one_kind_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(freed_with_jobs, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
