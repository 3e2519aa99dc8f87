/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event-loop.h - watches descriptors for input and calls their sources.
 *
 * Sources have a rank. Of the sources that are ready at one moment, those of rank 0 are served first. So the
 * end of a file is seen before any call or connection that came after it, and a resource that an application
 * gave back by closing is free for the next caller, as with system calls.
 *
 * Commands are served one at a time.
 *
 * One thread waits and serves. event_loop_wake() may be called by a signal handler or another thread.
 */
#ifndef SOFTCX_NIC_EVENT_LOOP_H
#define SOFTCX_NIC_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

enum { EVENT_LOOP_MOST = 512 }; /* sources in a round */

struct source {
	int fd;
	unsigned rank; /* 0 or 1 */
	/** There is input, or end of file. False: remove the source. */
	bool (*input)(struct source *source);
	/** Last call; frees what contains the source. The descriptor is closed already. */
	void (*destroy)(struct source *source);
	bool dead;
	struct source *next_dead;
};

struct event_loop {
	int epoll;
	int wake; /* eventfd */
	struct epoll_event ready[EVENT_LOOP_MOST];
	int nready;
	struct source *dead;        /* destroyed when nobody can hold a pointer any more */
	void (*between)(void *arg); /* after each source that was served; or NULL */
	void *arg;
};

int event_loop_init(struct event_loop *loop);
void event_loop_done(struct event_loop *loop);
int event_loop_add(struct event_loop *loop, struct source *source);
/** Stops watching @source and closes its descriptor now; destroys it after the current round. */
void event_loop_remove(struct event_loop *loop, struct source *source);
/** Waits up to @timeout_ns (UINT64_MAX: for ever) for a round. Number of sources that are ready. */
int event_loop_wait(struct event_loop *loop, uint64_t timeout_ns);
/** Serves what was ready: once for each wait. */
void event_loop_serve(struct event_loop *loop);
/**
 * Ends the current round's wait, or the next one's if none is under way: a signal between a look at a flag
 * and the wait would be lost otherwise. Safe in a signal handler.
 */
void event_loop_wake(const struct event_loop *loop);

#endif
