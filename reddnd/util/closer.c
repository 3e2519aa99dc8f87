/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* glibc before 2.38 has no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { STACK = 65536, PATIENCE_NS = 1000000 };

struct closing {
	int fd;
	STAILQ_ENTRY(closing) link;
};

/* Of one user and kind, while there is something to close. Its threads end when there is not */
struct pool {
	uid_t user;
	enum closer_kind kind;
	STAILQ_HEAD(, closing) queue;
	unsigned pending; /* in the queue or being closed */
	unsigned threads;
	SLIST_ENTRY(pool) link;
};

static struct {
	pthread_mutex_t lock;
	SLIST_HEAD(, pool) pools;
	unsigned others[CLOSER_KINDS]; /* pending, of all users that are not trusted */
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool user_is_trusted(uid_t user)
{
	return user == 0 || user == geteuid();
}

/* With the lock held, as all functions of pools */
static struct pool *pool_find(uid_t user, enum closer_kind kind)
{
	struct pool *p;

	SLIST_FOREACH (p, &closer.pools, link)
		if (p->user == user && p->kind == kind)
			return p;
	return NULL;
}

static struct pool *pool_find_or_add(uid_t user, enum closer_kind kind)
{
	struct pool *p = pool_find(user, kind);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->user = user;
	p->kind = kind;
	STAILQ_INIT(&p->queue);
	SLIST_INSERT_HEAD(&closer.pools, p, link);
	return p;
}

static void pool_count(struct pool *p, int more)
{
	p->pending += (unsigned)more;
	if (!user_is_trusted(p->user))
		closer.others[p->kind] += (unsigned)more;
}

static void interrupt(int number)
{
	(void)number; /* it only ends a wait: close(2) returns */
}

static void set_handler(void)
{
	struct sigaction action = {.sa_handler = interrupt};

	sigaction(SIGALRM, &action, NULL);
}

/* Signals are for the loop, which reads them from a descriptor; SIGALRM ends waits of this thread, again and
 * again. False: there are no timers left */
static bool patience_begin(timer_t *timer)
{
	const struct itimerspec often = {{.tv_nsec = PATIENCE_NS}, {.tv_nsec = PATIENCE_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	event.sigev_notify_thread_id = gettid();
	return timer_create(CLOCK_MONOTONIC, &event, timer) == 0 &&
	       timer_settime(*timer, 0, &often, NULL) == 0;
}

static void *pool_work(void *arg)
{
	struct pool *p = arg;
	struct closing *c;
	timer_t timer;
	bool limited = patience_begin(&timer);

	pthread_mutex_lock(&closer.lock);
	while ((c = STAILQ_FIRST(&p->queue))) {
		STAILQ_REMOVE_HEAD(&p->queue, link);
		pthread_mutex_unlock(&closer.lock);
		close(c->fd);
		free(c);
		pthread_mutex_lock(&closer.lock);
		pool_count(p, -1);
	}
	if (--p->threads == 0) {
		SLIST_REMOVE(&closer.pools, p, pool, link);
		free(p);
	}
	pthread_mutex_unlock(&closer.lock);
	if (limited)
		timer_delete(timer);
	return NULL;
}

static void pool_start_thread(struct pool *p)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	pthread_once(&once, set_handler);
	if (pthread_attr_init(&attr) != 0)
		return;
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attr, pool_work, p) == 0) {
		pthread_setname_np(thread, "reddnd-closer");
		p->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

/* Without memory the descriptor stays open: it must not be closed here. Without a thread it waits for the
 * next call */
static void add(uid_t user, enum closer_kind kind, int fd)
{
	struct closing *c = fd < 0 ? NULL : malloc(sizeof(*c));
	struct pool *p;

	if (!c)
		return;
	c->fd = fd;
	pthread_mutex_lock(&closer.lock);
	p = pool_find_or_add(user, kind);
	if (p) {
		STAILQ_INSERT_TAIL(&p->queue, c, link);
		pool_count(p, 1);
		if (p->threads < p->pending && p->threads < CLOSER_USER_MAX)
			pool_start_thread(p);
	}
	pthread_mutex_unlock(&closer.lock);
	if (!p)
		free(c);
}

void closer_close(uid_t user, int fd)
{
	add(user, CLOSER_TAKEN, fd);
}

void closer_hang_up(uid_t user, int sock)
{
	char byte;

	shutdown(sock, SHUT_RDWR); /* so that nothing more comes */
	/* What would wait are the descriptors in messages that were not read, out of band or not */
	if (setsockopt(sock, SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int)) == 0 &&
		recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		close(sock);
		return;
	}
	add(user, CLOSER_PEER, sock);
}

bool closer_is_full(uid_t user, enum closer_kind kind)
{
	const struct pool *p;
	bool full;

	if (user_is_trusted(user))
		return false;
	pthread_mutex_lock(&closer.lock);
	p = pool_find(user, kind);
	full = (p && p->pending >= CLOSER_USER_MAX) || closer.others[kind] >= CLOSER_OTHERS_MAX;
	pthread_mutex_unlock(&closer.lock);
	return full;
}
