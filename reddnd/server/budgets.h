/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * budgets.h - sessions of offloads with a time budget or a loop budget. A session is watched while it has
 * requests outstanding; one that rests costs nothing. A loop without a bound gets its credits at these times.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_BUDGETS_H
#define SERVER_BUDGETS_H

#include "reddnd/session/session.h"

struct budgets {
	TAILQ_HEAD(, session) watched;
	sd_event_source *timer;
	uint64_t period_us; /* to the next check; 0: none is due */
	void (*due)(void *arg);
	void *arg;
};

/** @due: check every session that is watched. -errno of sd-event. */
int budgets_init(struct budgets *b, sd_event *event, void (*due)(void *arg), void *arg);
void budgets_deinit(struct budgets *b); /* fine on one that is all zero */

/** A request of @s may have come. True: the session is watched from now on; check it at once. */
bool budgets_begin(struct budgets *b, struct session *s);
/** After a check: the session rests, or is due for another check within a part of its budget. */
void budgets_continue(struct budgets *b, struct session *s);
/** Its loop got credits: those that got none have theirs first, next time. */
void budgets_fed(struct budgets *b, struct session *s);
/** Its session is over. */
void budgets_end(struct budgets *b, struct session *s);

#endif
