/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/executors.h"

#include "reddnd/server/executor-thread.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { DEFAULT_MAX = 4 };

TAILQ_HEAD(sessions, session);

struct executors {
	struct rnic_device *dev;
	int (*call)(void *arg);
	void *arg;
	struct executor_thread *threads[EXECUTORS_MAX], *chosen;
	unsigned nthreads, limit;
	int fd; /* eventfd: of this process's loop */
	sd_event_source *source;
	pthread_mutex_t lock; /* of the next two */
	struct sessions changed;
	bool armed;
};

/* The event loop hears of it, and looks at all that have changed before it asks again */
static void on_turn(void *arg, struct session *s)
{
	struct executors *e = arg;
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

static int on_changed(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct executors *e = arg;
	eventfd_t count;

	(void)source;
	(void)revents;
	eventfd_read(fd, &count);
	return e->call(e->arg);
}

int executors_new(
	struct executors **out, sd_event *event, struct rnic_device *dev, int (*wanted)(void *arg), void *arg)
{
	struct executors *e = calloc(1, sizeof(*e));
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

void executors_free(struct executors *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nthreads; i++) {
		executor_thread_free(e->threads[i]);
	}
	sd_event_source_disable_unref(e->source);
	if (e->fd >= 0)
		close(e->fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

void executors_limit(struct executors *e, unsigned threads)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	e->limit = threads ? threads : cpus < 1 ? 1 : cpus > DEFAULT_MAX ? DEFAULT_MAX : (unsigned)cpus;
	if (e->limit > EXECUTORS_MAX)
		e->limit = EXECUTORS_MAX;
}

static struct executor_thread *least_loaded(const struct executors *e)
{
	struct executor_thread *t = NULL;

	for (unsigned i = 0; i < e->nthreads; i++)
		if (!t || executor_thread_sessions(e->threads[i]) < executor_thread_sessions(t))
			t = e->threads[i];
	return t;
}

int executors_choose(struct executors *e, struct rnic_plain_events **events)
{
	struct executor_thread *t = least_loaded(e);
	int r = 0;

	if ((!t || executor_thread_sessions(t)) && e->nthreads < e->limit) {
		r = executor_thread_new(&t, e->dev, on_turn, e);
		if (r == 0)
			e->threads[e->nthreads++] = t;
		else if (e->nthreads)
			r = 0;
	}
	t = least_loaded(e);
	e->chosen = t;
	if (t)
		*events = executor_thread_events(t);
	return t ? 0 : r;
}

int executors_add(struct executors *e, struct session *s)
{
	return executor_thread_add(e->chosen, s);
}

void executors_remove(struct executors *e, struct session *s)
{
	if (!s->executed.thread)
		return;
	executor_thread_remove(s->executed.thread, s);
	pthread_mutex_lock(&e->lock);
	if (s->executed.changed)
		TAILQ_REMOVE(&e->changed, s, executed.changed_link);
	s->executed.changed = false;
	pthread_mutex_unlock(&e->lock);
}

struct session *executors_next(struct executors *e)
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

bool executors_arm(struct executors *e)
{
	bool armed;

	pthread_mutex_lock(&e->lock);
	armed = e->armed = TAILQ_EMPTY(&e->changed);
	pthread_mutex_unlock(&e->lock);
	return armed;
}
