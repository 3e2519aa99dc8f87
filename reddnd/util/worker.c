/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/worker.h"

#include "util/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

TAILQ_HEAD(jobs, worker_job);

struct worker {
	struct worker_limits limits;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t work;  /* a job may be taken, or the end has come */
	struct jobs queued, running, finished;
	bool ending;
	/* of the loop alone */
	int fd;
	sd_event_source *source;
	pthread_t *threads;
	unsigned nthreads;
};

/* Those that share the limits of @job */
static unsigned count(const struct jobs *jobs, const struct worker_job *job)
{
	const struct worker_job *j;
	unsigned n = 0;

	TAILQ_FOREACH (j, jobs, link)
		n += j->key == job->key && j->kind == job->kind;
	return n;
}

/* The first job of which one more may be at work; NULL: none */
static struct worker_job *next_job(const struct worker *w)
{
	struct worker_job *j;

	TAILQ_FOREACH (j, &w->queued, link)
		if (count(&w->running, j) < w->limits.running)
			return j;
	return NULL;
}

/* With the lock held, but not while the job runs */
static void run_one(struct worker *w, struct worker_job *job)
{
	TAILQ_REMOVE(&w->queued, job, link);
	TAILQ_INSERT_TAIL(&w->running, job, link);
	pthread_mutex_unlock(&w->lock);
	job->run(job);
	pthread_mutex_lock(&w->lock);
	TAILQ_REMOVE(&w->running, job, link);
	TAILQ_INSERT_TAIL(&w->finished, job, link);
	eventfd_write(w->fd, 1);
	/* One that shares its limits may have waited for this one */
	pthread_cond_signal(&w->work);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct worker_job *job;

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		job = next_job(w);
		if (job)
			run_one(w, job);
		else
			pthread_cond_wait(&w->work, &w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void finish(struct worker *w, struct jobs *jobs, bool canceled)
{
	struct worker_job *j;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		j = TAILQ_FIRST(jobs);
		if (j)
			TAILQ_REMOVE(jobs, j, link);
		pthread_mutex_unlock(&w->lock);
		if (!j)
			return;
		j->canceled = canceled;
		j->done(j);
	}
}

static int on_finished(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct worker *w = arg;
	eventfd_t n;

	(void)source;
	(void)revents;
	eventfd_read(fd, &n);
	finish(w, &w->finished, false);
	return 0;
}

/* Signals are for the loop, which reads them from a descriptor */
static int start_threads(struct worker *w, const char *name)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (; w->nthreads < w->limits.threads && r == 0; w->nthreads += r == 0) {
		r = -pthread_create(&w->threads[w->nthreads], NULL, work, w);
		if (r == 0)
			pthread_setname_np(w->threads[w->nthreads], name);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

DEFINE_CLEANUP(struct worker *, worker_free)

int worker_new(struct worker **out, sd_event *event, const char *name, const struct worker_limits *limits)
{
	CLEANUP(worker_freep) struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->limits = *limits;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, NULL);
	TAILQ_INIT(&w->queued);
	TAILQ_INIT(&w->running);
	TAILQ_INIT(&w->finished);
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	w->threads = calloc(limits->threads, sizeof(*w->threads));
	if (!w->threads)
		return -ENOMEM;
	r = sd_event_add_io(event, &w->source, w->fd, EPOLLIN, on_finished, w);
	if (r >= 0)
		r = start_threads(w, name);
	if (r < 0)
		return r;
	*out = steal_ptr(&w);
	return 0;
}

void worker_free(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->work);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->nthreads; i++)
		pthread_join(w->threads[i], NULL);
	finish(w, &w->finished, false);
	finish(w, &w->queued, true);
	sd_event_source_disable_unref(w->source);
	if (w->fd >= 0)
		close(w->fd);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
	free(w->threads);
	free(w);
}

int worker_submit(struct worker *w, struct worker_job *job)
{
	unsigned pending;

	job->canceled = false;
	pthread_mutex_lock(&w->lock);
	pending = count(&w->queued, job) + count(&w->running, job);
	if (pending < w->limits.pending) {
		TAILQ_INSERT_TAIL(&w->queued, job, link);
		pthread_cond_signal(&w->work);
	}
	pthread_mutex_unlock(&w->lock);
	return pending < w->limits.pending ? 0 : -EBUSY;
}
