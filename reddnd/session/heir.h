/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heir.h - recycled sessions that go on under this daemon: taking over what the one before has noted
 * (session_note()). All others end.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_HEIR_H
#define SESSION_HEIR_H

#include "reddnd/session/session.h"

/** NULL, or why the session in @slot cannot go on at all, in words; @o: the offload of that name, or NULL. */
const char *session_obstacle(const struct ledger_slot *slot, const struct offload *o);
/** True: its instances have extents of a store. */
bool session_publishes(const struct ledger_slot *slot);
/** Before the stores of this daemon are opened: what instances of the session of @ledger in @slot, which
 * publishes and goes on with @o, have of its store (held_store_expect()). -EBADMSG: what is in the slot is
 * not what its offload has; -ENOMEM. */
int session_hold(const struct ledger *ledger, const struct ledger_slot *slot, const struct rnic_arena *arena,
	const struct offload *o);
/** After it, if the session does not go on, and its queue pairs are gone (rnic_sweep_queues()): what it holds
 * is the store's again, which learns what became of its instances. Does nothing if its store is not open. */
void session_let_go(const struct ledger *ledger, const struct ledger_slot *slot,
	const struct rnic_arena *arena, const struct offload *o);
/** NULL, or why it can go on only as a foreign one (foreign.h), in words. */
const char *session_estrangement(const struct ledger_slot *slot, const struct offload *o);

/** True if a session of @ledger in @slot that goes on as a foreign one may read what programs of @g store:
 * its own was proved with what was stored when the daemon before this one died. */
bool session_is_overtaken(
	const struct ledger *ledger, const struct ledger_slot *slot, const struct generation *g);
/** True if a store of @o, the offload of that name or NULL, is not what the session of @dev in @slot reads in
 * its place: another file (generation_replaces()), or one that was cut or overwritten meanwhile. */
bool session_store_is_replaced(
	const struct rnic_device *dev, const struct ledger_slot *slot, const struct offload *o);

/**
 * Takes over the session in @slot, which was inherited, and which nothing stands against. @foreign: why it
 * goes on without @o, or NULL. Its connection is that of @client. Nothing in its queues changes. On success
 * the session owns the connection and the reference to @t, which is charged for it. -EBADMSG: what is in the
 * slot is not what its offload has; -ENOMEM. After an error all is as before.
 */
int session_adopt(struct session **s, struct ledger_slot *slot, const struct session_parts *parts,
	const struct offload *o, const char *foreign, struct tenant *t, const struct session_client *client,
	uint64_t now_us);

/** Looks for an error in its queues that nobody had an event of: error CQEs, and then queue pairs that are
 * broken without one. Positive: @v describes it. */
int session_look(struct session *s, struct verdict *v);

#endif
