/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spares.h - what sessions that ended have of the device, kept for a while for sessions that begin.
 *
 * To make two queues, their CQs and their memory takes a dozen firmware commands, and as many to destroy
 * them. So the queues of the code are reset, their CQs go on counting, and the memory stays pinned. The same
 * of the recycler and of the CQ of recycled replies. Rings of the next session have CQE numbers from there
 * on. Of a recycled chain whose slots share lanes for them only the memory stays (recycle-template.h): its
 * queues are made anew when the session has ended, so that nobody waits for that; the same if one of them had
 * failed when the client left.
 *
 * A spare goes to a session of the same tenant, whose instances are written from the same image: its keys and
 * its protection domain are that tenant's, and memory that the chain can reach is cleared. The queue pair of
 * the client is always a new one. The kernel of a client refuses a connection to a queue pair that it still
 * has in a connection that is over (Linux core/cm.c, IB_CM_REJ_STALE_CONN), and packets of that may be under
 * way.
 *
 * There is room for SPARES_MAX. When that is used up, a tenant that has fewer displaces the oldest of the one
 * that has the most: so a tenant whose clients come and go does not make others wait for their queues. None
 * outlives the configuration under which its session ended, nor is one kept of a session that goes on under
 * an older one: the owner of the struct clears them.
 *
 * A session that broke, or that the daemon ended, keeps its queues, and so do those that a daemon before this
 * one made, that have a loop without a bound, and on devices where a session has the CQ of its replies alone,
 * or that do anything when a queue in RESET is enabled: while the queues of a session are reset one after the
 * other, its code may still enable one of them (rnic_observed.reset_drops_enables).
 *
 * In the ledger a spare is a slot that ends: the next daemon destroys it.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SESSION_SPARES_H
#define SESSION_SPARES_H

#include "reddnd/session/session.h"

enum { SPARES_MAX = 64 };

struct spares {
	TAILQ_HEAD(, session) kept; /* the oldest first */
	unsigned n;
	sd_event_source *timer;
	uint64_t keep_us; /* of the configuration in force */
};

int spares_init(struct spares *sp, sd_event *event); /* -errno of sd-event */
void spares_deinit(struct spares *sp);               /* fine on one that is all zero */

/** Takes @s, which is over, instead of session_free(). False: it cannot serve another, and is as before. */
bool spares_put(struct spares *sp, struct session *s);
/** Gives @s, which begins, queues that fit, the CQ of its replies included. False: there are none. */
bool spares_take(struct spares *sp, struct session *s);
/** Destroys all. False: there were none. */
bool spares_clear(struct spares *sp);

#endif
