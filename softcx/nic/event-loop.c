/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/event-loop.h"
#include "util/array.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int event_loop_init(struct event_loop *loop)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

	*loop = (struct event_loop){.wake = -1};
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return -errno;
	loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake < 0)
		return -errno;
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->wake, &event) < 0 ? -errno : 0;
}

static void reap(struct event_loop *loop)
{
	while (loop->dead) {
		struct source *source = loop->dead;

		loop->dead = source->next_dead;
		source->destroy(source);
	}
}

void event_loop_done(struct event_loop *loop)
{
	reap(loop);
	if (loop->wake >= 0)
		close(loop->wake);
	if (loop->epoll >= 0)
		close(loop->epoll);
}

int event_loop_add(struct event_loop *loop, struct source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void event_loop_remove(struct event_loop *loop, struct source *source)
{
	if (source->dead)
		return;
	source->dead = true;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
	source->next_dead = loop->dead;
	loop->dead = source;
}

int event_loop_wait(struct event_loop *loop, uint64_t timeout_ns)
{
	struct timespec ts = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
	int n = epoll_pwait2(
		loop->epoll, loop->ready, COUNT(loop->ready), timeout_ns == UINT64_MAX ? NULL : &ts, NULL);

	loop->nready = n < 0 ? 0 : n;
	return loop->nready;
}

void event_loop_serve(struct event_loop *loop)
{
	eventfd_t wakes;

	for (unsigned rank = 0; rank < 2; rank++) {
		for (int i = 0; i < loop->nready; i++) {
			struct source *source = loop->ready[i].data.ptr;

			if (!source) {
				eventfd_read(loop->wake, &wakes);
				continue;
			}
			if (source->rank != rank || source->dead)
				continue;
			if (!source->input(source))
				event_loop_remove(loop, source);
			if (loop->between)
				loop->between(loop->arg);
		}
	}
	reap(loop);
}

void event_loop_wake(const struct event_loop *loop)
{
	int before = errno;

	eventfd_write(loop->wake, 1);
	errno = before;
}
