/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * extents.h - the extents of a store that the instances of an unrolled session are armed with
 * (chain/ring/publish.h): taken before a slot is armed, and what became of each, once its instance is over or
 * its queues are stopped. A session for which the store has none goes on with those that were not published,
 * and waits without any.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_EXTENTS_H
#define SESSION_EXTENTS_H

#include "reddnd/chain/ring/publish.h"
#include "reddnd/session/session.h"

/** Before the first instance is armed; does nothing for a program without a payload. -ENOMEM. */
int session_extents_begin(struct session *s);
/** True if the store has as many as its slots take, besides what others may hold. */
bool session_extents_have_room(const struct session *s);
/** Extents for the instances from @from up to @to, exclusive. Returns the first one for which there is none,
 * or @to. */
uint64_t session_extents_take(struct session *s, uint64_t from, uint64_t to);
/** The store learns what became of the instances that are over, of all that it does not know. */
void session_extents_settle(struct session *s);
/** True: a request broke a rule for payloads, which @v describes. */
bool session_extents_are_broken(const struct session *s, struct verdict *v);
/** The same of all instances, over or not, and gives back what was not published. Its queues are stopped, or
 * were never made. Fine if there are none. */
void session_extents_end(struct session *s);

/** Of instance @n, which is not armed again. */
struct chain_outcome session_extents_outcome(const struct session *s, uint64_t n);

#endif
