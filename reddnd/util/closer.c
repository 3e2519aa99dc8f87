/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/closer.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STACK = 65536 };

struct closing {
	int fd;
	STAILQ_ENTRY(closing) link;
};

static struct {
	pthread_mutex_t lock;
	STAILQ_HEAD(, closing) queue;
	unsigned pending; /* in the queue or being closed */
	unsigned threads;
} closer = {PTHREAD_MUTEX_INITIALIZER, STAILQ_HEAD_INITIALIZER(closer.queue), 0, 0};

/* A thread ends when there is nothing to do; one that hangs in close(2) holds up only itself */
static void *work(void *arg)
{
	struct closing *c;

	(void)arg;
	pthread_mutex_lock(&closer.lock);
	while ((c = STAILQ_FIRST(&closer.queue))) {
		STAILQ_REMOVE_HEAD(&closer.queue, link);
		pthread_mutex_unlock(&closer.lock);
		close(c->fd);
		free(c);
		pthread_mutex_lock(&closer.lock);
		closer.pending--;
	}
	closer.threads--;
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/* With the lock held. Signals are for the loop, which reads them from a descriptor */
static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	if (pthread_attr_init(&attr) != 0)
		return;
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attr, work, NULL) == 0) {
		pthread_setname_np(thread, "reddnd-closer");
		closer.threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* Without memory the descriptor stays open: it must not be closed here. Without a thread it waits for the
 * next call */
void closer_close(int fd)
{
	struct closing *c = fd < 0 ? NULL : malloc(sizeof(*c));

	if (!c)
		return;
	c->fd = fd;
	pthread_mutex_lock(&closer.lock);
	STAILQ_INSERT_TAIL(&closer.queue, c, link);
	closer.pending++;
	if (closer.threads < closer.pending && closer.threads < CLOSER_MAX)
		start_thread();
	pthread_mutex_unlock(&closer.lock);
}

void closer_hang_up(int sock)
{
	shutdown(sock, SHUT_RDWR); /* so that nothing more comes */
	closer_close(sock);
}

bool closer_is_full(void)
{
	bool full;

	pthread_mutex_lock(&closer.lock);
	full = closer.pending >= CLOSER_MAX;
	pthread_mutex_unlock(&closer.lock);
	return full;
}
