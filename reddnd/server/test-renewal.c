/* SPDX-License-Identifier: BSD-2-Clause */
/* One renewal at a time, whoever asks for the next one, and when. The worker and the generations are the
 * test's own. */
#include "reddnd/server/renewal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

int __wrap_worker_submit(struct worker *w, struct worker_job *job);
int __wrap_catalog_load(const char *path, struct catalog **catalog, char **errors);
struct catalog *__wrap_catalog_ref(struct catalog *catalog);
void __wrap_catalog_free(struct catalog *catalog);
int __wrap_generation_new(struct generation **g, struct catalog *catalog, const struct generation *now,
	const struct generation_parts *parts);
int __wrap_generation_open(
	struct generation *g, void (*compiled)(void *arg, struct generation *g), void *arg);
void __wrap_generation_opened(struct generation *g);
void __wrap_generation_unref(struct generation *g);

/* What is called for each kind, and over() */
enum { OVER = RENEWAL_KINDS, CALLBACKS };

static struct {
	struct renewal rn;
	struct worker_job *job; /* that is at work */
	int loaded, opened;     /* outcomes of a job */
	unsigned generations;
	void (*then[CALLBACKS])(void); /* what the callback does, once */
	char ends[32];                 /* of renewals: kind and number, lower case if it failed */
} t;

static struct catalog catalog = {.noffloads = 1};
static struct generation in_force = {.catalog = &catalog};

/* ---- in place of the worker and of generations ---- */

int __wrap_worker_submit(struct worker *w, struct worker_job *job)
{
	assert_null(t.job);
	assert_int_equal(t.rn.state, RENEWAL_AT_WORK);
	t.job = job;
	return 0;
}

int __wrap_catalog_load(const char *path, struct catalog **out, char **errors)
{
	(void)path, (void)errors;
	*out = &catalog;
	return t.loaded;
}

struct catalog *__wrap_catalog_ref(struct catalog *c)
{
	return c;
}

void __wrap_catalog_free(struct catalog *c)
{
}

int __wrap_generation_new(struct generation **g, struct catalog *c, const struct generation *now,
	const struct generation_parts *parts)
{
	(void)c, (void)now, (void)parts;
	*g = calloc(1, sizeof(**g));
	assert_non_null(*g);
	t.generations++;
	return 0;
}

int __wrap_generation_open(struct generation *g, void (*compiled)(void *arg, struct generation *g), void *arg)
{
	assert_true(!compiled && !arg);
	return t.opened;
}

void __wrap_generation_opened(struct generation *g)
{
}

void __wrap_generation_unref(struct generation *g)
{
	t.generations--;
	free(g);
}

/* ---- callbacks ---- */

static void do_then(unsigned callback)
{
	void (*then)(void) = t.then[callback];

	assert_int_equal(t.rn.state, RENEWAL_ENDING);
	t.then[callback] = NULL;
	if (then)
		then();
}

static void note(enum renewal_kind kind, uint64_t number, int error, struct generation *next)
{
	size_t len = strlen(t.ends);

	assert_true(len + 3 < sizeof(t.ends));
	assert_true(!error == !!next);
	t.ends[len] = (error ? "ltr" : "LTR")[kind];
	t.ends[len + 1] = (char)('0' + number);
	if (next)
		generation_unref(next);
	do_then(kind);
}

static struct generation *now(void *arg)
{
	return &in_force;
}

static int check(void *arg, const struct catalog *next)
{
	(void)arg, (void)next;
	return 0;
}

static void reloaded(void *arg, uint64_t number, int error, struct generation *next, const char *errors)
{
	(void)arg, (void)errors;
	note(RENEWAL_RELOAD, number, error, next);
}

static void taken(void *arg, uint64_t number, int error, struct generation *next, const char *errors)
{
	(void)arg, (void)errors;
	note(RENEWAL_TAKE, number, error, next);
}

static void retried(void *arg, struct generation *next)
{
	note(RENEWAL_RETRY, 0, 0, next);
}

static void over(void *arg)
{
	do_then(OVER);
}

static int setup(void **state)
{
	static const struct served served = {0};
	static const struct renewal_parts parts = {
		.config = "of the test", .generation = {.served = &served}};
	static const struct renewal_ops ops = {.now = now,
		.check = check,
		.reloaded = reloaded,
		.taken = taken,
		.retried = retried,
		.over = over};

	memset(&t, 0, sizeof(t));
	renewal_init(&t.rn, &parts, &ops, NULL);
	return 0;
}

/* ---- what comes meanwhile ---- */

static void work(void)
{
	struct worker_job *job = t.job;

	assert_non_null(job);
	job->run(job);
	t.job = NULL;
	job->done(job);
}

static void work_all(void)
{
	while (t.job)
		work();
	assert_int_equal(t.rn.state, RENEWAL_IDLE);
	assert_false(renewal_is_coming(&t.rn));
	assert_int_equal(t.generations, 0);
}

static void reload(void)
{
	renewal_reload(&t.rn);
}

static void take(void)
{
	renewal_take(&t.rn);
}

static void retry(void)
{
	renewal_retry(&t.rn);
	assert_true(renewal_is_coming(&t.rn));
}

static void reload_and_take(void)
{
	assert_int_equal(renewal_reload(&t.rn), 2);
	assert_int_equal(renewal_take(&t.rn), 3);
	assert_int_equal(renewal_reload(&t.rn), 2);
}

static void in_turn(void **state)
{
	assert_int_equal(renewal_take(&t.rn), 1);
	assert_int_equal(renewal_reload(&t.rn), 2);
	assert_int_equal(renewal_take(&t.rn), 3);
	assert_int_equal(renewal_reload(&t.rn), 2);
	retry(); /* those will do */
	work_all();
	assert_string_equal(t.ends, "T1L2T3");
	retry();
	assert_int_equal(renewal_reload(&t.rn), 4);
	work_all();
	assert_string_equal(t.ends, "T1L2T3R0L4");
}

/* Each callback of each kind, whose renewal succeeds or fails, asks for each kind, while another one waits
 * and while none does */
static void a_callback_asks(void **state)
{
	static void (*const ask[])(void) = {reload, take, retry};

	for (unsigned i = 0; i < 3u * 3 * 2 * 2 * 2; i++) {
		unsigned first = i % 3, next = i / 3 % 3;
		bool fails = i / 9 % 2, waits = i / 18 % 2, late = i / 36;

		setup(state);
		t.opened = fails ? -ENOMEM : 0;
		t.then[late ? OVER : first] = ask[next];
		ask[first]();
		if (waits)
			renewal_take(&t.rn);
		work_all();
		/* A retry that fails is not reported, nor needed when another kind follows */
		if (!fails)
			assert_int_equal(strlen(t.ends) / 2, 1 + (waits ? 1 + (next == RENEWAL_RELOAD) : 1));
	}
}

/* As two lines of one peer of the control socket, and clients of a table that was replaced */
static void a_reload_fails_and_more_follow(void **state)
{
	t.loaded = -EINVAL;
	t.then[RENEWAL_RELOAD] = reload_and_take;
	t.then[OVER] = retry;
	assert_int_equal(renewal_reload(&t.rn), 1);
	work();
	t.loaded = 0;
	assert_string_equal(t.ends, "l1");
	assert_int_equal(t.rn.now.number, 2);
	work_all();
	assert_string_equal(t.ends, "l1L2T3");
}

static void a_retry_follows_a_retry(void **state)
{
	t.then[OVER] = retry;
	retry();
	work();
	assert_string_equal(t.ends, "R0");
	assert_int_equal(t.rn.state, RENEWAL_AT_WORK);
	work_all();
	assert_string_equal(t.ends, "R0R0");
}

static void none_begins_at_the_end(void **state)
{
	t.then[OVER] = reload;
	renewal_take(&t.rn);
	renewal_reload(&t.rn);
	t.job->canceled = true;
	work();
	assert_string_equal(t.ends, "t1");
	assert_null(t.job);
	assert_int_equal(t.generations, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(in_turn, setup),
		cmocka_unit_test(a_callback_asks),
		cmocka_unit_test_setup(a_reload_fails_and_more_follow, setup),
		cmocka_unit_test_setup(a_retry_follows_a_retry, setup),
		cmocka_unit_test_setup(none_begins_at_the_end, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
