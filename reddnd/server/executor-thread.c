/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/executor-thread.h"

#include "reddnd/session/cpu.h"
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
#include <sys/eventfd.h>
#include <unistd.h>

/* EVENTS_EVERY: turns between two looks for events, which take a system call; YIELD_EVERY: turns in a row
 * that find nothing, before others may run; or one more than sessions are ready, if these are fewer. Without
 * that a client on the same CPU waits for its time slice, and its next request as well */
enum { EVENTS_EVERY = 16, EVENTS_AT_ONCE = 256, YIELD_EVERY = 16, MS = 1000 };

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
struct executor_thread {
	void (*changed)(void *arg, struct session *s);
	void *arg;
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

/* ---- of a thread, with its lock --------------------------------------------------------------- */

static void set_ready(struct executor_thread *t, struct session *s)
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

static void unlist(struct executor_thread *t, struct session *s)
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
static struct session *next(struct executor_thread *t)
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

static void take_events(struct executor_thread *t)
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

static void serve(struct executor_thread *t, struct session *s)
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
		t->changed(t->arg, s);
}

/* Those that have rested. Returns us until the next one has; UINT64_MAX: none rests */
static uint64_t end_rests(struct executor_thread *t)
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

static void sleep_for(struct executor_thread *t, uint64_t us)
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
static bool is_idle(const struct executor_thread *t)
{
	return t->idle > t->nready || t->idle >= YIELD_EVERY;
}

static void yield(struct executor_thread *t)
{
	t->idle = 0;
	pthread_mutex_unlock(&t->lock);
	sched_yield();
	pthread_mutex_lock(&t->lock);
}

static void *run(void *arg)
{
	struct executor_thread *t = arg;
	struct session *s;

	pthread_mutex_lock(&t->lock);
	while (!t->ending) {
		while (t->wanted)
			pthread_cond_wait(&t->free, &t->lock);
		if (++t->turns >= EVENTS_EVERY)
			take_events(t);
		s = next(t);
		if (s)
			serve(t, s);
		if (is_idle(t))
			yield(t);
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

static void get(struct executor_thread *t)
{
	t->wanted++;
	pthread_mutex_lock(&t->lock);
}

static void put(struct executor_thread *t)
{
	t->wanted--;
	pthread_cond_signal(&t->free);
	pthread_mutex_unlock(&t->lock);
	eventfd_write(t->wake, 1);
}

static void release(struct executor_thread *t)
{
	rnic_plain_events_free(t->events);
	if (t->wake >= 0)
		close(t->wake);
	pthread_cond_destroy(&t->free);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Signals are the event loop's */
static int start(struct executor_thread *t)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	sigdelset(&all, SIGBUS); /* bus-guard.h */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_setname_np(t->thread, "reddnd-executor");
	return r;
}

int executor_thread_new(struct executor_thread **out, struct rnic_device *dev,
	void (*changed)(void *arg, struct session *s), void *arg)
{
	struct executor_thread *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->changed = changed;
	t->arg = arg;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->free, NULL);
	TAILQ_INIT(&t->ready);
	TAILQ_INIT(&t->resting);
	LIST_INIT(&t->shares);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->wake < 0 ? -errno : rnic_plain_events_new(&t->events, dev);
	if (r == 0)
		r = start(t);
	if (r < 0) {
		release(t);
		return log_errno(r, "cannot start a thread that executes requests");
	}
	*out = t;
	return 0;
}

void executor_thread_free(struct executor_thread *t)
{
	assert(t->nsessions == 0);
	get(t);
	t->ending = true;
	put(t);
	pthread_join(t->thread, NULL);
	release(t);
}

struct rnic_plain_events *executor_thread_events(const struct executor_thread *t)
{
	return t->events;
}

unsigned executor_thread_sessions(const struct executor_thread *t)
{
	return t->nsessions;
}

static struct share *get_share(struct executor_thread *t, const struct tenant *tenant)
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

int executor_thread_add(struct executor_thread *t, struct session *s)
{
	get(t);
	s->executed.share = get_share(t, s->tenant);
	if (s->executed.share) {
		s->executed.share->sessions++;
		s->executed.thread = t;
		HASH_ADD(by_thread, t->sessions, id, sizeof(s->id), s);
		t->nsessions++;
		set_ready(t, s);
	}
	put(t);
	return s->executed.share ? 0 : -ENOMEM;
}

void executor_thread_remove(struct executor_thread *t, struct session *s)
{
	struct share *of = s->executed.share;

	get(t);
	unlist(t, s);
	HASH_DELETE(by_thread, t->sessions, s);
	t->nsessions--;
	if (--of->sessions == 0) {
		LIST_REMOVE(of, all);
		free(of);
	}
	put(t);
	s->executed.thread = NULL;
}
