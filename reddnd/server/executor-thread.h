/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * executor-thread.h - a thread of executors.h, and whose turn it is there. Private to executors.c.
 *
 * Thread rules: those of executors.h.
 */
#ifndef SERVER_EXECUTOR_THREAD_H
#define SERVER_EXECUTOR_THREAD_H

#include "reddnd/session/session.h"

struct executor_thread;

/** Starts it. @changed is called on the thread, after a turn of a session that the event loop has to look at.
 * Errors have been logged. */
int executor_thread_new(struct executor_thread **t, struct rnic_device *dev,
	void (*changed)(void *arg, struct session *s), void *arg);
/** Ends it; without sessions. */
void executor_thread_free(struct executor_thread *t);

/** Where completions of its sessions report to. */
struct rnic_plain_events *executor_thread_events(const struct executor_thread *t);
unsigned executor_thread_sessions(const struct executor_thread *t); /* their number */

/** It serves @s from now on. -ENOMEM. */
int executor_thread_add(struct executor_thread *t, struct session *s);
/** And no longer: it does not use it any more. */
void executor_thread_remove(struct executor_thread *t, struct session *s);

#endif
