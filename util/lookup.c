/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/lookup.h"

#include "util/host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lookup {
	atomic_uint users; /* who began it, and its thread */
	atomic_bool ended;
	int fd; /* eventfd */
	int error;
	struct addrinfo *list;
	uint16_t port;
	char host[NI_MAXHOST];
};

static void lookup_release(struct lookup *l)
{
	if (atomic_fetch_sub(&l->users, 1) > 1)
		return;
	if (l->list)
		freeaddrinfo(l->list);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

static void lookup_set_ended(struct lookup *l)
{
	atomic_store(&l->ended, true);
	eventfd_write(l->fd, 1);
}

static void *lookup_run(void *arg)
{
	struct lookup *l = arg;

	l->error = host_look_up(l->host, l->port, 0, &l->list);
	lookup_set_ended(l);
	lookup_release(l);
	return NULL;
}

/* Without signals, which are for the threads of the program */
static int lookup_start(struct lookup *l)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setsigmask_np(&attr, &all);
	atomic_fetch_add(&l->users, 1);
	r = pthread_create(&thread, &attr, lookup_run, l);
	if (r)
		atomic_fetch_sub(&l->users, 1);
	pthread_attr_destroy(&attr);
	return -r;
}

int lookup_begin(struct lookup **lookup, const char *host, uint16_t port)
{
	struct lookup *l = calloc(1, sizeof(*l));
	int r = 0;

	if (!l)
		return -ENOMEM;
	l->users = 1;
	l->port = port;
	snprintf(l->host, sizeof(l->host), "%s", host);
	l->fd = eventfd(0, EFD_CLOEXEC);
	if (l->fd < 0)
		r = -errno;
	else if (host_look_up(host, port, AI_NUMERICHOST, &l->list) == 0)
		lookup_set_ended(l);
	else
		r = lookup_start(l);
	if (r < 0)
		return lookup_release(l), r;
	*lookup = l;
	return 0;
}

int lookup_fd(const struct lookup *l)
{
	return l->fd;
}

bool lookup_has_ended(const struct lookup *l)
{
	return atomic_load(&l->ended);
}

int lookup_end(struct lookup *l, struct addrinfo **list)
{
	int error = l->error;

	*list = l->list;
	l->list = NULL;
	lookup_release(l);
	return error;
}

void lookup_abandon(struct lookup *l)
{
	if (l)
		lookup_release(l);
}
