/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/inspection.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

enum { PATIENCE_US = 2000000 };

struct look {
	struct region_look file; /* of the thread, from the queue on until it is done */
	/* of the loop */
	struct region *region; /* NULL: it is no longer there */
	bool is_late;
	STAILQ_ENTRY(look) link;
};

STAILQ_HEAD(looks, look);

struct inspection {
	const struct inspection_ops *ops;
	void *arg;
	sd_event_source *source;
	pthread_mutex_t lock; /* of all that follows */
	struct looks waiting, done;
	struct look *now;  /* of the thread that goes on with those that wait */
	uint64_t since_us; /* it began */
	uint64_t thread;   /* its number: the others only have a look that does not come back; 0: none */
	uint64_t last;     /* number of a thread */
	unsigned users;    /* threads, and the loop */
	int fd;            /* eventfd: some are done */
};

/* ---- on threads ---- */

/* With the lock held, which it gives back */
static void leave(struct inspection *in)
{
	bool last = --in->users == 0;
	struct look *l;

	pthread_mutex_unlock(&in->lock);
	if (!last)
		return;
	while ((l = STAILQ_FIRST(&in->done))) {
		STAILQ_REMOVE_HEAD(&in->done, link);
		free(l);
	}
	close(in->fd);
	pthread_mutex_destroy(&in->lock);
	free(in);
}

static void *work(void *arg)
{
	struct inspection *in = arg;
	struct look *l;
	uint64_t number;

	pthread_mutex_lock(&in->lock);
	number = in->thread;
	while (in->thread == number && (l = STAILQ_FIRST(&in->waiting))) {
		STAILQ_REMOVE_HEAD(&in->waiting, link);
		in->now = l;
		in->since_us = clock_us();
		pthread_mutex_unlock(&in->lock);
		region_look(&l->file);
		pthread_mutex_lock(&in->lock);
		STAILQ_INSERT_TAIL(&in->done, l, link);
	}
	if (in->thread == number) {
		in->thread = 0;
		in->now = NULL;
	}
	eventfd_write(in->fd, 1);
	leave(in);
	return NULL;
}

/* ---- on that of the loop ---- */

/* With the lock held. No thread goes on, and there are too many that do not come back */
static bool is_stuck(const struct inspection *in)
{
	return !in->thread && in->users > INSPECTION_THREADS_MAX;
}

/* With the lock held. Signals are for the loop, which reads them from a descriptor */
static void start_thread(struct inspection *in)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (pthread_attr_init(&attr) != 0)
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attr, work, in) == 0) {
		pthread_setname_np(thread, "reddnd-look");
		in->thread = ++in->last;
		in->now = NULL;
		in->users++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

static void take(struct inspection *in, struct look *l)
{
	struct region *r = l->region;

	if (r) {
		r->looked = NULL;
		if (l->is_late)
			log_notice("region %s: file %s can be looked at again", r->conf->name, r->conf->path);
		in->ops->looked(in->arg, r, region_looked(r, &l->file));
	}
	free(l);
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct inspection *in = arg;
	struct looks done = STAILQ_HEAD_INITIALIZER(done);
	struct look *l;
	eventfd_t n;

	(void)source;
	(void)revents;
	eventfd_read(fd, &n);
	pthread_mutex_lock(&in->lock);
	STAILQ_CONCAT(&done, &in->done);
	pthread_mutex_unlock(&in->lock);
	while ((l = STAILQ_FIRST(&done))) {
		STAILQ_REMOVE_HEAD(&done, link);
		take(in, l);
	}
	in->ops->done(in->arg, !inspection_is_busy(in));
	return 0;
}

void inspection_add(struct inspection *in, struct region *r)
{
	struct look *l;
	bool stuck;

	pthread_mutex_lock(&in->lock);
	stuck = is_stuck(in); /* what waits has descriptors, also of regions that are closed meanwhile */
	pthread_mutex_unlock(&in->lock);
	l = r->looked || stuck ? NULL : calloc(1, sizeof(*l));
	if (!l)
		return;
	if (region_look_begin(&l->file, r) < 0) {
		free(l);
		return;
	}
	l->region = r;
	r->looked = &l->region;
	pthread_mutex_lock(&in->lock);
	STAILQ_INSERT_TAIL(&in->waiting, l, link);
	pthread_mutex_unlock(&in->lock);
}

void inspection_go_on(struct inspection *in)
{
	struct look *late = NULL;

	pthread_mutex_lock(&in->lock);
	if (in->now && clock_us() - in->since_us >= PATIENCE_US) {
		late = in->now;
		late->is_late = true;
		if (late->region)
			log_warning(
				"region %s: the file system of %s does not answer; the region is served, and "
				"nobody looks if its file is cut or replaced",
				late->region->conf->name, late->region->conf->path);
		in->thread = 0;
		in->now = NULL;
		if (is_stuck(in))
			log_error("%d looks at files do not answer: nobody looks at any file until one does",
				INSPECTION_THREADS_MAX);
	}
	if (!in->thread && !STAILQ_EMPTY(&in->waiting) && !is_stuck(in))
		start_thread(in);
	else if (late)
		eventfd_write(in->fd, 1); /* nothing else comes that would tell that the others are done */
	pthread_mutex_unlock(&in->lock);
}

bool inspection_is_busy(struct inspection *in)
{
	bool busy;

	pthread_mutex_lock(&in->lock);
	busy = in->thread || (!STAILQ_EMPTY(&in->waiting) && !is_stuck(in)) || !STAILQ_EMPTY(&in->done);
	pthread_mutex_unlock(&in->lock);
	return busy;
}

void inspection_free(struct inspection *in)
{
	struct look *l;

	sd_event_source_disable_unref(in->source);
	pthread_mutex_lock(&in->lock);
	while ((l = STAILQ_FIRST(&in->waiting))) {
		STAILQ_REMOVE_HEAD(&in->waiting, link);
		region_look_end(&l->file);
		free(l);
	}
	leave(in);
}

int inspection_new(struct inspection **out, sd_event *event, const struct inspection_ops *ops, void *arg)
{
	struct inspection *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	in->ops = ops;
	in->arg = arg;
	in->users = 1;
	STAILQ_INIT(&in->waiting);
	STAILQ_INIT(&in->done);
	pthread_mutex_init(&in->lock, NULL);
	in->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = in->fd < 0 ? -errno : sd_event_add_io(event, &in->source, in->fd, EPOLLIN, on_done, in);
	if (r < 0) {
		inspection_free(in);
		return r;
	}
	*out = in;
	return 0;
}
