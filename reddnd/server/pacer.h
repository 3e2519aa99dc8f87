/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pacer.h - rates: RECVs of a session are posted only as far as there are credits, of the session and of its
 * tenant. A client that sends more meets a receiver that is not ready, and its NIC repeats the SEND later: it
 * is slowed, not cut.
 *
 * A credit is spent when a RECV is posted. No more are posted ahead of what a client has used than a burst,
 * so in t seconds a session gets at most rate * t + 2 * burst requests. Credits are counted by time, not by
 * looks at a session: one that waits gets all that came meanwhile when this process or the NIC is held up, up
 * to a second's worth, on top of that. Credits of a tenant are shared evenly by those of its sessions that
 * wait for some.
 *
 * A limit in bytes is one of credits too: a request costs as many as its reply may have. Of an unrolled
 * session the daemon sees what it had, and gives the rest back; of a recycled one it does not.
 *
 * For a session without limits nothing of this is done. One with limits costs time while its client is at
 * work: an unrolled one when its completions are collected, and in steps while there are no credits; a
 * recycled one, of which nobody is told, in steps until the client rests.
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

/** Posts what may be posted: for a new session, after completions, and when a recycled one says that its
 * client is at work. */
void pacer_post(struct pacer *p, struct session *s);
/** After a limit has changed. */
void pacer_changed(struct pacer *p, struct session *s);
/** The session is over. */
void pacer_forget(struct pacer *p, struct session *s);

#endif
