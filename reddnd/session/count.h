/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count.h - what is over of the requests of a session: counted, by outcome and by the time it took in the
 * server (policy/offload-stats.h), and armed again. And what is not: requests that are not answered, and
 * clients that ask for nothing. The NIC writes the times, into the CQEs that the daemon looks at anyway.
 *
 * A positive return value reports a fault of the session, which @v describes.
 */
#ifndef SESSION_COUNT_H
#define SESSION_COUNT_H

#include "reddnd/session/session.h"

/** Arms what finished and lets the client use it. 0 or positive. */
int session_rearm(struct session *s, struct verdict *v);

/** Eighths of the instances that are finished and not armed again, rounded down: at 8 the client must wait.
 */
unsigned session_used(const struct session *s);

/** Requests that are over since the last time; of an unrolled session session_completed() counts them. */
uint64_t session_count(struct session *s);
/** Iterations of its loop since the last time. */
uint64_t session_count_loop(struct session *s);
/** Counts the outcomes of finished instances, and settles limits in bytes. A recycled session without limits
 * does not wait for anybody to look: of its outcomes those of the last lap are known. */
void session_count_outcomes(struct session *s);
/** The same for one that ends: what it does not know yet, nobody ever will. */
void session_count_rest(struct session *s);
/** To the ledger: counters and limits, as they are now. */
void session_note(struct session *s);

/* ---- for engines ---- */

/** @n requests took so many nanoseconds each. */
void session_took(struct session *s, uint64_t ns, uint64_t n);
/** Request @n, whose CQE is in the CQ of RECVs, was answered by @reply. */
void session_served(struct session *s, uint64_t n, const struct rnic_cqe *reply);
/** Number before which instances may be armed again: those that are over, as long as their RECV CQEs are
 * still there. *@broken: it is that of a request that was shorter than it must be, which @v describes. A
 * longer one than its RECV takes has failed. */
uint64_t session_may_arm(const struct session *s, bool *broken, struct verdict *v);
/** Of instance @n, in @replies: a ring of the replies of all slots. */
static inline struct outcome session_outcome_at(const struct session *s, uint64_t n, const uint8_t *replies)
{
	return outcome_read(&s->offload->outcome, replies, (unsigned)(n % s->queues.layout.slots));
}

/* ---- silence ---- */

/** Requests whose RECV has been used, answered or not, since the beginning. After session_count(); of a
 * session that nobody arms it is too low if more requests are over by then than that: count again. */
uint64_t session_received(const struct session *s);

/** Asks for one event of the next request. False: a request has come already. */
bool session_rest(struct session *s);

/** True once for a request that exceeds a budget; only the oldest one is looked at. @v names the budget. */
bool session_exceeds_budget(struct session *s, uint64_t now_us, struct verdict *v);

/** True if its client has asked for nothing for @limit_us (verdict.h). */
bool session_is_idle(struct session *s, uint64_t now_us, uint64_t limit_us);

#endif
