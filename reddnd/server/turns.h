/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns.h - sessions whose requests this process executes (session/cpu.h) take turns in the event loop, as
 * long as they have something to do; other events come between the rounds. Without work nothing runs here.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_TURNS_H
#define SERVER_TURNS_H

#include "reddnd/session/session.h"

struct turns_ops {
	struct session *(*find)(void *arg, uint64_t number); /* NULL: it is over */
	/** Lets @s work. True: it wants another turn, and goes on. */
	bool (*serve)(void *arg, struct session *s);
	/** Each session had its turn. */
	void (*round)(void *arg);
};

struct turns {
	struct rnic_plain_events *events;
	sd_event_source *source, *more;
	TAILQ_HEAD(turns_ready, session) ready;
	const struct turns_ops *ops;
	void *arg;
};

/** @t: all zero. turns_deinit() cleans up after errors, too, which have been logged. */
int turns_init(
	struct turns *t, sd_event *event, struct rnic_device *dev, const struct turns_ops *ops, void *arg);
void turns_deinit(struct turns *t); /* after the sessions */

/** @s gets no more turns. */
void turns_remove(struct turns *t, struct session *s);

#endif
