/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event-loop.h - watches descriptors for input and calls their sources.
 *
 * Sources have a rank. Of the sources that are ready at one moment, those of rank 0 are served first. So the
 * end of a file is seen before any call or connection that came after it, and a resource that an application
 * gave back by closing is free for the next caller, as with system calls.
 *
 * Commands are served one at a time. Between two of them the queues of the device run: they do not wait for
 * firmware.
 *
 * One thread polls. event_loop_wake() may be called by a signal handler or another thread.
 */
#ifndef SOFTCX_NIC_EVENT_LOOP_H
#define SOFTCX_NIC_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

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
	int wake;                   /* eventfd */
	struct source *dead;        /* destroyed when nobody can hold a pointer any more */
	void (*between)(void *arg); /* after each source that was served; or NULL */
	void *arg;
};

int event_loop_init(struct event_loop *loop);
void event_loop_done(struct event_loop *loop);
int event_loop_add(struct event_loop *loop, struct source *source);
/** Stops watching @source and closes its descriptor now; destroys it after the current round. */
void event_loop_remove(struct event_loop *loop, struct source *source);
/** One round: waits up to @timeout_ns (UINT64_MAX: for ever) and serves what is ready. Number of sources
 * served. */
int event_loop_poll(struct event_loop *loop, uint64_t timeout_ns);
/**
 * Ends the current round's wait, or the next one's if none is under way: a signal between a look at a flag
 * and the wait would be lost otherwise. Safe in a signal handler.
 */
void event_loop_wake(const struct event_loop *loop);

#endif
