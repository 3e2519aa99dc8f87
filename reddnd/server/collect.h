/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * collect.h - completions are taken in rounds, one after the other while there are any. A round takes the
 * completions of all sessions, arms again what finished, and frees the sessions that are over. Between rounds
 * events cause more of them; when one finds nothing, CQs are armed. For sessions that threads execute, and
 * that are used much, that need not be an empty one. Recycled sessions are looked at only if they have
 * extents, and each has an event of its own.
 *
 * The time between rounds follows the client that is nearest to running out of armed instances: it shrinks
 * when that client has used half of them since the last round, and grows below a quarter.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_COLLECT_H
#define SERVER_COLLECT_H

#include "reddnd/server/dispatch.h"

/** -errno, logged. */
int collect_init(struct dispatch *d);

/** Takes the completions that are there, counts them, and judges what they report. */
void collect_drain(struct dispatch *d);
/** A round. False: there were no completions. */
bool collect_round(struct dispatch *d);
/** A recycled session: if it has extents, rounds look what is over until nothing comes, and its recycler has
 * all that it can get. */
void collect_watch(struct dispatch *d, struct session *s);
/** Instances of @s may have to be armed in the next round, whether or not a completion comes. */
void collect_rearm_later(struct dispatch *d, struct session *s);
/** Frees the sessions that are over. */
void collect_reap(struct dispatch *d);

/** The next round begins soon. -errno of sd-event. */
int collect_schedule(struct dispatch *d);

/** What events call, with the dispatch as their argument: it is time for a round; threads have executed
 * something (session/cpu-threads.h). */
int collect_due(sd_event_source *source, uint64_t usec, void *arg);
int collect_executed(void *arg);

#endif
