/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * extents.h - the extents of a store that the instances of a session are armed with (chain/ring/publish.h):
 * taken before a slot is armed, and what became of each, once its instance is over or its queues are stopped.
 * A session for which the store has none goes on with those that were not published, and waits without any.
 *
 * Nothing in a slot changes before session_extents_settle() has been called for its instance: the ledger has
 * how many those are, for the next daemon, and the rest of it is in RQ entries.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_EXTENTS_H
#define SESSION_EXTENTS_H

#include "reddnd/chain/ring/publish.h"
#include "reddnd/session/session.h"

/** Before the first instance is armed; does nothing for a program without a payload. -ENOMEM. */
int session_extents_begin(struct session *s);
/** Instances of a session that a daemon before this one has left: those from @settled on have extents that
 * may be published, before number @armed, exclusive. */
struct extents_left {
	uint64_t settled, armed;
};

/** Of the session @l, whose block is at @block, and which goes on with @o. -EBADMSG: it cannot have that
 * many. */
int session_extents_left(const struct ledger_session *l, const struct offload *o, const uint8_t *block,
	struct extents_left *left);
/** Offset in the heap of the extent that instance @n has: that of its RECV, in the ring @rq. @iova: of the
 * heap. */
uint64_t session_extents_at(
	const struct offload *o, const struct queue_layout *l, const uint8_t *rq, uint64_t iova, uint64_t n);
/** In place of session_extents_begin(), of one that is taken over. -EBADMSG: instances were
 * reported to the store that are not over; -ENOMEM. */
int session_extents_adopt(struct session *s);
/** Of one that cannot be, whose queue pairs are gone: the store learns what became of what it holds for the
 * instances @left. @block: as above. @buckets, @heap: IOVAs of both in its windows. */
void session_extents_abandon(const struct offload *o, const struct queue_layout *l, const uint8_t *block,
	const struct extents_left *left, uint64_t buckets, uint64_t heap);

/** True if the store has as many as its slots take, besides what others may hold. */
bool session_extents_have_room(const struct session *s);
/** Extents for the instances from @from up to @to, exclusive. Returns the first one for which there is none,
 * or @to. */
uint64_t session_extents_take(struct session *s, uint64_t from, uint64_t to);
/** The store learns what became of the instances that are over, of all that it does not know. */
void session_extents_settle(struct session *s);
/** Reports what became of all instances, over or not, and gives back what was not published. Its queues are
 * stopped, or were never made. Fine if there are none. */
void session_extents_end(struct session *s);

/** Frees what this process knows of them, and reports nothing. */
void session_extents_forget(struct session *s);

/** How request @n ended, which is over, and whose slot is not armed again. */
void session_extents_outcome(const struct session *s, uint64_t n, struct outcome *out);
/** All that is over, and was counted: the store learns what became of it, and the instances in its slots get
 * the next extents, those before @most. Returns the number before which instances have them. *@broken: a
 * request broke a rule, which @v describes. */
uint64_t session_extents_next(struct session *s, uint64_t most, bool *broken, struct verdict *v);

#endif
