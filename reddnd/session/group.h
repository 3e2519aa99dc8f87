/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.h - a session of several connections (REDDN_REQ_JOIN of wire.h). Each connection has a struct
 * session, with its queues, instances and counters. The first one stands for the session: it has the limits
 * that all of them share, and what is reported is the sum of all. It begins first, and all end together, the
 * first one last.
 *
 * Connection k of session n has the number n + k * 2^LEDGER_CONNECTION_SHIFT: events and the ledger lead from
 * each of them to the first.
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_GROUP_H
#define SESSION_GROUP_H

#include "reddnd/session/session.h"

/** Number of the session, of whose connections @s is one. */
static inline uint64_t session_number(const struct session *s)
{
	return s->id & LEDGER_SESSION_MASK;
}

static inline bool session_is_first(const struct session *s)
{
	return s->first == s;
}

/** Each connection of a session, the first one first. */
#define SESSION_CONNECTIONS(s, of) for (s = (of)->first; s; s = s->further)

/** The number of the next connection of @first. */
uint64_t session_next_connection(const struct session *first);
/** @s becomes the next connection of @first. */
void session_join(struct session *s, struct session *first);
/** To the ledger: so many have been accepted. One that was not does not end the session with the daemon. */
void session_note_connections(const struct session *first);

/** False: the daemon before this one had more connections of that session. */
bool session_is_whole(const struct session *first);

/** Requests that are over, of all connections. */
uint64_t session_done(const struct session *s);

#endif
