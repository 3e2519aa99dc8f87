/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - who executes the requests of a session. What differs is behind these calls, but for taking a
 * session over (heir.c) and for what a layout has (queues.c).
 *
 *   recycled   the NIC, which arms instances again by itself, for as long as its files are open somewhere
 *   unrolled   the NIC, and this process arms what is over
 *   cpu        threads of this process, on a queue pair of rnic/plain.h
 *
 * Thread rules: one thread, that of the event loop. Threads of the last one are below it (cpu-threads.h).
 */
#ifndef SESSION_ENGINE_H
#define SESSION_ENGINE_H

#include "reddnd/generation/outcome.h"
#include "reddnd/policy/request.h"
#include "reddnd/policy/verdict.h"

struct session;
struct session_parts;

/** Whether the outcome of a request is known. */
enum session_known {
	SESSION_KNOWN,
	SESSION_NOT_YET, /* look again */
	SESSION_UNKNOWN, /* another one of its slot was over before somebody looked */
};

/** A positive value reports a fault of the session, which @v describes. */
struct session_engine {
	/* No event reports that requests are over, unless .listen() asks for it: .count() finds them. So an
	 * outcome may be lost that nobody waits for; extents wait for it */
	bool is_silent;
	bool judges_budgets; /* by itself, between two work requests; else server/timers.h does */

	/** Makes what the session needs in its slot and in memory, and connects it; only RECVs are missing.
	 * What was made before an error is destroyed by .free(). -ENOSPC, -ENOMEM or an error of the device;
	 * -EAGAIN: a store has no extents for it;
	 * errors of the device have been logged. */
	int (*begin)(struct session *s, const struct session_parts *parts, const struct request *request);
	/** From now on requests are executed. -ENOMEM. */
	int (*serve)(struct session *s);

	/** RECVs up to this number may be posted: their instances, and the next one, are ready. */
	uint64_t (*postable)(const struct session *s);
	/** Posts RECVs up to number @to; fewer than are posted: does nothing. -errno of the device, logged.
	 */
	int (*post)(struct session *s, uint64_t to);
	/** RECVs are posted by .post() alone from now on, or no longer: session_is_paced(). */
	void (*pace)(struct session *s, bool paced);
	/** Only if .is_silent: asks for one event of the next reply. */
	void (*listen)(struct session *s);

	/** Brings progress.done up to date, and counts how long requests took that are over since. */
	void (*count)(struct session *s);
	/** Of the loop without a bound, of all requests. */
	uint64_t (*iterations)(const struct session *s);
	/** Requests that have come, answered or not; counted up to number @to at most. */
	uint64_t (*received)(const struct session *s, uint64_t to);
	/** How request @n ended, which is over. */
	enum session_known (*outcome)(const struct session *s, uint64_t n, struct outcome *out);
	/** Makes ready again what is over, and was counted. 0 or positive: a request broke a rule. NULL: it
	 * was made ready when it ended. */
	int (*rearm)(struct session *s, struct verdict *v);

	/** Before it ends: nobody executes a request any more, and all that are over can be counted.
	 * Positive: a verdict waited for that. */
	int (*settle)(struct session *s, struct verdict *v);
	/** Nothing is written to the client after this. */
	void (*stop)(struct session *s);
	/** All that .begin() made, after .stop() or an error. */
	void (*free)(struct session *s);
};

extern const struct session_engine engine_recycled, engine_unrolled, engine_cpu;

static inline const struct session_engine *session_engine_of(bool cpu, bool recycled)
{
	return cpu ? &engine_cpu : recycled ? &engine_recycled : &engine_unrolled;
}

/** Takes the CQE of a reply of an unrolled session: these complete on CQs that many of them share
 * (rnic/cq-pool.h). 0; or positive: a fault of the session, which @v describes. */
int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v);

#endif
