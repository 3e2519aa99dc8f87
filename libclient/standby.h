/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * standby.h - the second session of a handle with several hosts: it is with another host, and takes the place
 * of the first one when that is lost (reconnect.c), or late with its replies.
 *
 *     NONE ──a connect──▶ WARM ──takes the place──▶ (the session of the handle)
 *      ▲                  ▲  │                            │ late         │ lost
 *      ├──it is lost──────┼──┘                            │              │
 *      ├──it is lost────LATE ◀────────────────────────────┘              │
 *      │                  └──all replies have come──▶ WARM               │
 *      └──a moment later──GONE ◀─────────────────────────────────────────┘
 *
 * To destroy queues and to make others takes long, compared with a get: so one that is lost is left when its
 * requests have been sent again, and the next one is made some replies later.
 *
 * So a session that was late is taken into use again only when it owes no reply: of two hosts that are both
 * late, one is waited for.
 *
 * A session is late when a request has waited for more than 8 times what 99 of 100 wait, at least 5 ms. The
 * requests of the handle have no times of their own: all that are outstanding get a mark, and when they have
 * their replies, those that are outstanding then.
 */
#ifndef LIBCLIENT_STANDBY_H
#define LIBCLIENT_STANDBY_H

#include "libclient/connect.h"
#include "libclient/session.h"

#include <stdbool.h>
#include <stdint.h>

struct reddn;

enum reddn_standby_state { REDDN_STANDBY_NONE, REDDN_STANDBY_WARM, REDDN_STANDBY_LATE, REDDN_STANDBY_GONE };

struct reddn_standby {
	bool wanted; /* of a handle with several hosts that outlives its sessions */
	enum reddn_standby_state state;
	struct reddn_session session;
	uint64_t since;      /* ms (clock_ms): WARM or LATE */
	uint64_t connect_at; /* ms; NONE */
	uint32_t pause_ms;   /* the last one */

	bool instead;        /* it is to take the place of the session in use, whose table is too old */
	uint64_t stepped_at; /* ns (clock_ns) */
	bool unwatched;      /* nothing was outstanding when the alarm was set: the next request sets it */

	/* of the session in use */
	uint64_t marked_at; /* ns */
	bool marked;        /* a request was outstanding then */
	uint64_t usual;     /* ns: 99 of 100 marks were met sooner */
	/* requests that may be sent again because they are late; what was sent when they were counted */
	uint64_t credit, credited;
};

/**
 * It is wanted: see whether it is there, make it if it is not, and set the alarm of the descriptor for the
 * next step.
 */
void reddn_standby_step(struct reddn *c);

/** The handle waits from now on, or has a new request: the alarm may have to be set. */
void reddn_standby_watch(struct reddn *c);

/**
 * The session in use is late, and the standby WARM. Then the requests that are sent again are counted. Call
 * it after a poll that found nothing, with @now (clock_ns).
 */
bool reddn_standby_is_due(struct reddn *c, uint64_t now);

/**
 * The table of the session in use is older than the caller wants it: its host is out for a second, and the
 * standby takes its place when it is WARM. False: there is no other host to ask, or its table was as old
 * within this second.
 */
bool reddn_standby_instead(struct reddn *c);

/** The next step is due for one who polls all the time. */
static inline bool reddn_standby_waits(const struct reddn_standby *y, uint64_t now)
{
	return now - y->stepped_at >= 1000000;
}

/** It is WARM: it becomes the session of the handle, and the session of the handle is LATE, or @gone. */
void reddn_standby_swap(struct reddn *c, bool gone);

/** Requests on the wire, of all sessions of the handle. */
uint64_t reddn_sent(const struct reddn *c);

/** Disconnect it and free it. */
void reddn_standby_drop(struct reddn *c);

#endif
