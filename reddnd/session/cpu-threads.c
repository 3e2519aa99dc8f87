/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu-threads.h"

#include "reddnd/session/cpu-internal.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* EVENTS_EVERY: turns between two looks for events, which take a system call; YIELD_EVERY: turns in a row
 * that find nothing, before others may run; or one more than sessions are ready, if these are fewer. Without
 * that a client on the same CPU waits for its time slice, and its next request as well */
enum { EVENTS_EVERY = 16, EVENTS_AT_ONCE = 256, YIELD_EVERY = 16, MS = 1000, DEFAULT_MAX = 4 };

TAILQ_HEAD(sessions, session);

/* A tenant that has sessions on a thread */
struct share {
	const struct tenant *tenant;
	unsigned sessions;
	struct sessions ready;
	bool listed;
	TAILQ_ENTRY(share) link; /* of those with ready sessions */
	LIST_ENTRY(share) all;
};

/* All but .wanted is under the lock, which the thread holds in a turn. */
struct cpu_thread {
	struct cpu_threads *of;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t free; /* nobody wants the lock any more */
	atomic_uint wanted;  /* the event loop waits for the lock */
	bool ending;
	struct rnic_plain_events *events;
	bool events_failed; /* the device is gone, and its descriptor stays readable for ever */
	int wake;           /* eventfd: something for a thread that sleeps */
	unsigned nsessions;
	struct session *sessions; /* by_thread */
	TAILQ_HEAD(, share) ready;
	LIST_HEAD(, share) shares;
	struct sessions resting; /* until session_cpu_resting() */
	unsigned nready;         /* sessions */
	unsigned turns;          /* since the last look for events */
	unsigned idle;           /* turns in a row that found nothing */
};

struct cpu_threads {
	struct rnic_device *dev;
	int (*call)(void *arg);
	void *arg;
	struct cpu_thread *threads[CPU_THREADS_MAX], *chosen;
	unsigned nthreads, limit;
	int fd; /* eventfd: of this process's loop */
	sd_event_source *source;
	pthread_mutex_t lock; /* of the next two */
	struct sessions changed;
	bool armed;
};

/* The event loop hears of it, and looks at all that have changed before it asks again */
static void report_turn(struct cpu_threads *e, struct session *s)
{
	bool wake;

	if (atomic_exchange(&s->executed.changed, true))
		return;
	pthread_mutex_lock(&e->lock);
	TAILQ_INSERT_TAIL(&e->changed, s, executed.changed_link);
	wake = e->armed;
	e->armed = false;
	pthread_mutex_unlock(&e->lock);
	if (wake)
		eventfd_write(e->fd, 1);
}

/* ---- of a thread, with its lock --------------------------------------------------------------- */

static void set_ready(struct cpu_thread *t, struct session *s)
{
	struct share *of = s->executed.share;

	if (s->executed.state == SESSION_READY)
		return;
	if (s->executed.state == SESSION_RESTING)
		TAILQ_REMOVE(&t->resting, s, executed.link);
	s->executed.state = SESSION_READY;
	t->nready++;
	TAILQ_INSERT_TAIL(&of->ready, s, executed.link);
	if (!of->listed)
		TAILQ_INSERT_TAIL(&t->ready, of, link);
	of->listed = true;
}

static void unlist(struct cpu_thread *t, struct session *s)
{
	struct share *of = s->executed.share;

	if (s->executed.state == SESSION_RESTING)
		TAILQ_REMOVE(&t->resting, s, executed.link);
	if (s->executed.state == SESSION_READY) {
		t->nready--;
		TAILQ_REMOVE(&of->ready, s, executed.link);
		if (TAILQ_EMPTY(&of->ready)) {
			TAILQ_REMOVE(&t->ready, of, link);
			of->listed = false;
		}
	}
	s->executed.state = SESSION_ASLEEP;
}

/* The next one of the tenant whose turn it is; NULL: all sleep */
static struct session *cpu_thread_next(struct cpu_thread *t)
{
	struct share *of = TAILQ_FIRST(&t->ready);
	struct session *s;

	if (!of)
		return NULL;
	TAILQ_REMOVE(&t->ready, of, link);
	TAILQ_INSERT_TAIL(&t->ready, of, link);
	s = TAILQ_FIRST(&of->ready);
	unlist(t, s);
	return s;
}

static void take_events(struct cpu_thread *t)
{
	uint64_t number;
	int r = 0;

	t->turns = 0;
	if (t->events_failed)
		return;
	for (unsigned n = 0; n < EVENTS_AT_ONCE && (r = rnic_plain_events_next(t->events, &number)) > 0;
		n++) {
		struct session *s;

		HASH_FIND(by_thread, t->sessions, &number, sizeof(number), s);
		if (s)
			set_ready(t, s);
	}
	if (r < 0) {
		t->events_failed = true;
		log_errno(r, "completions of queues cannot be read any more");
	}
}

static void cpu_thread_serve(struct cpu_thread *t, struct session *s)
{
	const enum session_cpu_turn turn = session_cpu_turn(s, clock_us());

	t->idle = turn == SESSION_CPU_IDLE ? t->idle + 1 : 0;
	switch (turn) {
	case SESSION_CPU_BUSY:
	case SESSION_CPU_IDLE:
		set_ready(t, s);
		break;
	case SESSION_CPU_RESTING:
		s->executed.state = SESSION_RESTING;
		TAILQ_INSERT_TAIL(&t->resting, s, executed.link);
		break;
	case SESSION_CPU_ASLEEP:
	case SESSION_CPU_BROKEN:
		break;
	}
	if (session_cpu_changed(s))
		report_turn(t->of, s);
}

/* Those that have rested. Returns us until the next one has; UINT64_MAX: none rests */
static uint64_t end_rests(struct cpu_thread *t)
{
	uint64_t now = TAILQ_EMPTY(&t->resting) ? 0 : clock_us(), first = UINT64_MAX;
	struct session *s, *after;

	for (s = TAILQ_FIRST(&t->resting); s; s = after) {
		uint64_t us = session_cpu_resting(s, now);

		after = TAILQ_NEXT(s, executed.link);
		if (us == 0)
			set_ready(t, s);
		else if (us < first)
			first = us;
	}
	return first;
}

static void sleep_for(struct cpu_thread *t, uint64_t us)
{
	/* poll(2) ignores a negative descriptor */
	struct pollfd fd[] = {
		{.fd = t->events_failed ? -1 : rnic_plain_events_fd(t->events), .events = POLLIN},
		{.fd = t->wake, .events = POLLIN}};
	const struct timespec time = {
		.tv_sec = (time_t)(us / (MS * MS)), .tv_nsec = (long)(us % (MS * MS)) * MS};
	eventfd_t count;

	pthread_mutex_unlock(&t->lock);
	if (ppoll(fd, 2, us == UINT64_MAX ? NULL : &time, NULL) > 0 && fd[1].revents)
		eventfd_read(t->wake, &count);
	pthread_mutex_lock(&t->lock);
	take_events(t);
}

/* As good as all of them are */
static bool is_idle(const struct cpu_thread *t)
{
	return t->idle > t->nready || t->idle >= YIELD_EVERY;
}

static void cpu_thread_yield(struct cpu_thread *t)
{
	t->idle = 0;
	pthread_mutex_unlock(&t->lock);
	sched_yield();
	pthread_mutex_lock(&t->lock);
}

static void *cpu_thread_run(void *arg)
{
	struct cpu_thread *t = arg;
	struct session *s;

	pthread_mutex_lock(&t->lock);
	while (!t->ending) {
		while (t->wanted)
			pthread_cond_wait(&t->free, &t->lock);
		if (++t->turns >= EVENTS_EVERY)
			take_events(t);
		s = cpu_thread_next(t);
		if (s)
			cpu_thread_serve(t, s);
		if (is_idle(t))
			cpu_thread_yield(t);
		if (!s || !TAILQ_EMPTY(&t->resting)) {
			uint64_t us = end_rests(t);

			if (!s && TAILQ_EMPTY(&t->ready) && !t->ending && !t->wanted)
				sleep_for(t, us);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- of the event loop ------------------------------------------------------------------------ */

static void cpu_thread_get(struct cpu_thread *t)
{
	t->wanted++;
	pthread_mutex_lock(&t->lock);
}

static void cpu_thread_put(struct cpu_thread *t)
{
	t->wanted--;
	pthread_cond_signal(&t->free);
	pthread_mutex_unlock(&t->lock);
	eventfd_write(t->wake, 1);
}

static void cpu_thread_release(struct cpu_thread *t)
{
	rnic_plain_events_free(t->events);
	if (t->wake >= 0)
		close(t->wake);
	pthread_cond_destroy(&t->free);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Signals are the event loop's */
static int cpu_thread_start(struct cpu_thread *t)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* bus-guard.h */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&t->thread, NULL, cpu_thread_run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_setname_np(t->thread, "reddnd-executor");
	return r;
}

static int cpu_thread_new(struct cpu_threads *e, struct cpu_thread **out)
{
	struct cpu_thread *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->of = e;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->free, NULL);
	TAILQ_INIT(&t->ready);
	TAILQ_INIT(&t->resting);
	LIST_INIT(&t->shares);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->wake < 0 ? -errno : rnic_plain_events_new(&t->events, e->dev);
	if (r == 0)
		r = cpu_thread_start(t);
	if (r < 0) {
		cpu_thread_release(t);
		return log_errno(r, "cannot start a thread that executes requests");
	}
	*out = t;
	return 0;
}

static void cpu_thread_free(struct cpu_thread *t)
{
	assert(t->nsessions == 0);
	cpu_thread_get(t);
	t->ending = true;
	cpu_thread_put(t);
	pthread_join(t->thread, NULL);
	cpu_thread_release(t);
}

static struct share *get_share(struct cpu_thread *t, const struct tenant *tenant)
{
	struct share *of;

	LIST_FOREACH (of, &t->shares, all)
		if (of->tenant == tenant)
			return of;
	of = calloc(1, sizeof(*of));
	if (!of)
		return NULL;
	of->tenant = tenant;
	TAILQ_INIT(&of->ready);
	LIST_INSERT_HEAD(&t->shares, of, all);
	return of;
}

static int cpu_thread_add(struct cpu_thread *t, struct session *s)
{
	cpu_thread_get(t);
	s->executed.share = get_share(t, s->tenant);
	if (s->executed.share) {
		s->executed.share->sessions++;
		s->executed.thread = t;
		HASH_ADD(by_thread, t->sessions, id, sizeof(s->id), s);
		t->nsessions++;
		set_ready(t, s);
	}
	cpu_thread_put(t);
	return s->executed.share ? 0 : -ENOMEM;
}

static void cpu_thread_remove(struct cpu_thread *t, struct session *s)
{
	struct share *of = s->executed.share;

	cpu_thread_get(t);
	unlist(t, s);
	HASH_DELETE(by_thread, t->sessions, s);
	t->nsessions--;
	if (--of->sessions == 0) {
		LIST_REMOVE(of, all);
		free(of);
	}
	cpu_thread_put(t);
	s->executed.thread = NULL;
}

/* ---- all of them ------------------------------------------------------------------------------ */

static int on_changed(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct cpu_threads *e = arg;
	eventfd_t count;

	(void)source;
	(void)revents;
	eventfd_read(fd, &count);
	return e->call(e->arg);
}

int cpu_threads_new(struct cpu_threads **out, sd_event *event, struct rnic_device *dev,
	int (*wanted)(void *arg), void *arg)
{
	struct cpu_threads *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->dev = dev;
	e->call = wanted;
	e->arg = arg;
	e->armed = true;
	e->limit = 1;
	TAILQ_INIT(&e->changed);
	pthread_mutex_init(&e->lock, NULL);
	*out = e;
	e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->fd < 0)
		return log_errno(-errno, "cannot make an eventfd");
	r = sd_event_add_io(event, &e->source, e->fd, EPOLLIN, on_changed, e);
	if (r >= 0)
		r = sd_event_source_set_exit_on_failure(e->source, 1);
	return r < 0 ? log_errno(r, "cannot watch threads that execute requests") : 0;
}

void cpu_threads_free(struct cpu_threads *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nthreads; i++)
		cpu_thread_free(e->threads[i]);
	sd_event_source_disable_unref(e->source);
	if (e->fd >= 0)
		close(e->fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void cpu_threads_limit(struct cpu_threads *e, unsigned threads)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	e->limit = threads ? threads : cpus < 1 ? 1 : cpus > DEFAULT_MAX ? DEFAULT_MAX : (unsigned)cpus;
	if (e->limit > CPU_THREADS_MAX)
		e->limit = CPU_THREADS_MAX;
}

static struct cpu_thread *least_loaded(const struct cpu_threads *e)
{
	struct cpu_thread *t = NULL;

	for (unsigned i = 0; i < e->nthreads; i++)
		if (!t || e->threads[i]->nsessions < t->nsessions)
			t = e->threads[i];
	return t;
}

int cpu_threads_choose(struct cpu_threads *e, struct rnic_plain_events **events)
{
	struct cpu_thread *t;
	int r = 0;

	if (!e)
		return 0;
	t = least_loaded(e);
	if ((!t || t->nsessions) && e->nthreads < e->limit) {
		r = cpu_thread_new(e, &t);
		if (r == 0)
			e->threads[e->nthreads++] = t;
		else if (e->nthreads)
			r = 0;
	}
	t = least_loaded(e);
	e->chosen = t;
	if (t)
		*events = t->events;
	return t ? 0 : r;
}

int cpu_threads_add(struct cpu_threads *e, struct session *s)
{
	return cpu_thread_add(e->chosen, s);
}

void cpu_threads_remove(struct cpu_threads *e, struct session *s)
{
	if (!s->executed.thread)
		return;
	cpu_thread_remove(s->executed.thread, s);
	pthread_mutex_lock(&e->lock);
	if (s->executed.changed)
		TAILQ_REMOVE(&e->changed, s, executed.changed_link);
	s->executed.changed = false;
	pthread_mutex_unlock(&e->lock);
}

struct session *cpu_threads_next(struct cpu_threads *e)
{
	struct session *s;

	pthread_mutex_lock(&e->lock);
	s = TAILQ_FIRST(&e->changed);
	if (s) {
		TAILQ_REMOVE(&e->changed, s, executed.changed_link);
		s->executed.changed = false; /* before it is looked at */
	}
	pthread_mutex_unlock(&e->lock);
	return s;
}

bool cpu_threads_arm(struct cpu_threads *e)
{
	bool armed;

	pthread_mutex_lock(&e->lock);
	armed = e->armed = TAILQ_EMPTY(&e->changed);
	pthread_mutex_unlock(&e->lock);
	return armed;
}
