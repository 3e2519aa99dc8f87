/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pacer.h - rates: RECVs of a session are posted only as far as the session and its tenant have credits. A
 * client that sends more meets a receiver that is not ready, and its NIC repeats the SEND later: the client
 * is slowed, not cut.
 *
 * Posting a RECV spends a credit. At most a burst of RECVs is posted ahead of what a client has used, so in t
 * seconds a session gets at most rate * t + 2 * burst requests. The sessions of a tenant together hold at
 * most one burst of its credits in RECVs that no request has used, except that each may have one RECV. A
 * session that ends gives such credits back. Credits accrue with time, not with steps of the pacer: if this
 * process or the NIC is held up, a session that waits gets all that accrued meanwhile, up to a second's worth
 * on top of that. Sessions of a tenant that wait for credits share them evenly, and the connections of a
 * session (session/session.h) share those of the session in the same way. Below, "session" is a connection.
 *
 * A limit in bytes counts credits too: a request costs as many as its longest reply. When it is over,
 * session/count.h sees what its reply had, and gives the rest back. A reply that was longer than a reply
 * should be leaves a debt, and nothing is posted before the rate has paid it.
 *
 * A session without limits costs nothing here. One with limits costs time while its client is at work: an
 * unrolled session when its completions are collected, and in steps while there are no credits; a recycled
 * one, which raises no events, in steps until its client rests.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_PACER_H
#define SERVER_PACER_H

#include "reddnd/session/session.h"

#include <systemd/sd-event.h>

struct pacer {
	TAILQ_HEAD(session_waiting, session) waiting;
	sd_event_source *timer;
	uint64_t due; /* CLOCK_MONOTONIC, us; UINT64_MAX: never */
	void (*count)(void *arg, struct session *s);
	void *arg;
};

/** @count: brings the counters of a session up to date. -errno of sd-event. */
int pacer_init(struct pacer *p, sd_event *event, void (*count)(void *arg, struct session *s), void *arg);
void pacer_deinit(struct pacer *p);

/** Posts the RECVs that may be posted: for a new session, after completions, and after an event of a recycled
 * session, whose client is at work. */
void pacer_post(struct pacer *p, struct session *s);
/** A limit of @s, or of its tenant, has changed. */
void pacer_changed(struct pacer *p, struct session *s);
/** The session is over, and its queues have stopped: gives back the credits of RECVs that it did not use. */
void pacer_forget(struct pacer *p, struct session *s);

#endif
