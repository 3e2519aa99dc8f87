/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at files that do not come back. What a look does, and the clock, are the test's. */
#include "reddnd/generation/inspection.h"
#include "util/cleanup.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/cmocka.h"

enum { REGIONS = INSPECTION_THREADS_MAX + 4, PATIENCE_S = 2, WAIT_US = 60000000 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned begun;
	bool answers;
	time_t now; /* s */
} files = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .now = 1};

static char path[] = "/r";
static const struct catalog_region conf = {.name = "r", .path = path};
static struct region region[REGIONS];
static unsigned looked;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_region_look_begin(struct region_look *look, const struct region *r);
void __wrap_region_look(struct region_look *look);
void __wrap_region_look_end(struct region_look *look);
unsigned __wrap_region_looked(struct region *r, const struct region_look *look);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	*t = (struct timespec){.tv_sec = __atomic_load_n(&files.now, __ATOMIC_ACQUIRE)};
	return 0;
}

int __wrap_region_look_begin(struct region_look *look, const struct region *r)
{
	*look = (struct region_look){0};
	return 0;
}

void __wrap_region_look(struct region_look *look)
{
	pthread_mutex_lock(&files.lock);
	files.begun++;
	pthread_cond_broadcast(&files.changed);
	while (!files.answers)
		pthread_cond_wait(&files.changed, &files.lock);
	pthread_mutex_unlock(&files.lock);
}

void __wrap_region_look_end(struct region_look *look)
{
}

unsigned __wrap_region_looked(struct region *r, const struct region_look *look)
{
	looked++;
	return 0;
}

static void on_looked(void *arg, struct region *r, unsigned news)
{
}

static void on_done(void *arg, bool all)
{
	*(bool *)arg = all;
}

static const struct inspection_ops ops = {.looked = on_looked, .done = on_done};

static void wait_begun(unsigned n)
{
	pthread_mutex_lock(&files.lock);
	while (files.begun < n)
		pthread_cond_wait(&files.changed, &files.lock);
	pthread_mutex_unlock(&files.lock);
}

static void test_stuck(void **state)
{
	CLEANUP(sd_event_unrefp) sd_event *event = NULL;
	struct inspection *in;
	bool all = false;

	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(inspection_new(&in, event, &ops, &all), 0);
	for (unsigned i = 0; i < REGIONS; i++)
		region[i].conf = &conf;
	for (unsigned i = 0; i + 1 < REGIONS; i++)
		inspection_add(in, &region[i]);
	inspection_go_on(in);
	for (unsigned i = 1; i <= INSPECTION_THREADS_MAX; i++) {
		wait_begun(i);
		assert_true(inspection_is_busy(in));
		__atomic_add_fetch(&files.now, PATIENCE_S, __ATOMIC_RELEASE);
		inspection_go_on(in);
	}
	/* Nobody looks any more, and nobody waits for that */
	assert_false(inspection_is_busy(in));
	assert_true(sd_event_run(event, WAIT_US) > 0);
	assert_true(all);
	assert_int_equal(looked, 0);
	inspection_add(in, &region[REGIONS - 1]);
	assert_null(region[REGIONS - 1].looked);
	inspection_go_on(in);
	assert_int_equal(files.begun, INSPECTION_THREADS_MAX);
	/* They come back */
	pthread_mutex_lock(&files.lock);
	files.answers = true;
	pthread_cond_broadcast(&files.changed);
	pthread_mutex_unlock(&files.lock);
	while (looked < REGIONS - 1) {
		assert_true(sd_event_run(event, WAIT_US) > 0);
		inspection_go_on(in);
	}
	inspection_add(in, &region[REGIONS - 1]);
	assert_non_null(region[REGIONS - 1].looked);
	inspection_go_on(in);
	while (looked < REGIONS)
		assert_true(sd_event_run(event, WAIT_US) > 0);
	inspection_free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
