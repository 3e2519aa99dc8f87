/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late.h - the requests of sessions that no completion reports: those of recycled sessions, and of sessions
 * that the CPU serves (session_counts_late()). They are counted when somebody asks for their number, and of
 * ten thousand such sessions most have done nothing since the last time. So the table below has what shows
 * that, and nothing else: a look at a session loads one cache line of its own memory, and depends on no look
 * before it, so that CPUs overlap them.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_LATE_H
#define SERVER_LATE_H

#include "reddnd/server/accounting.h"

struct late {
	struct late_entry *entries;
	unsigned n, room;
	unsigned at; /* late_count_some() has looked at entries from here on */
};

enum { LATE_SOME = 2048 };

void late_deinit(struct late *l); /* fine on one that is all zero */

/** @s counts late: late_remove() it before it is freed. -ENOMEM. */
int late_add(struct late *l, struct session *s);
/** Fine for a session that was not added. */
void late_remove(struct late *l, struct session *s);

/** Counts the requests of all of them that are over by now. */
void late_count(struct late *l, struct accounting *a);
/** The same of LATE_SOME of them, and of the next ones at the next call: for what is made every few seconds
 * whether or not anybody reads it. */
void late_count_some(struct late *l, struct accounting *a);
/** Calls of that until each has been looked at; at least 1. */
unsigned late_rounds(const struct late *l);

#endif
