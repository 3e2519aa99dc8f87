/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept.h - clients that connect: refused with a reason, or given a session.
 *
 * Refusals are listed as events, and questions are answered, at the rate of their source (policy/refusals.h):
 * why a session ended, what its offload takes and answers, and how large reply slots must be. Beyond it
 * refusals are counted, a question about a session gets no answer, and one about slots counts as a refusal.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ACCEPT_H
#define SERVER_ACCEPT_H

#include "reddnd/policy/question.h"
#include "reddnd/policy/refusals.h"
#include "reddnd/server/accounting.h"
#include "reddnd/server/enforcement.h"
#include "reddnd/server/events.h"
#include "reddnd/session/session.h"

/** What a client is judged by, and what its session is made from. All of it is borrowed. */
struct acceptor {
	struct session_parts parts;
	const struct generation *generation; /* what new clients get */
	const struct end_reasons *end_reasons;
	struct session *const *sessions; /* all of them, by_id */
	struct enforcement *enforcement;
	struct refusals *refusals;
	struct events *events;
	struct accounting *accounting;
	uint64_t *last_id; /* of sessions */
};

/**
 * Judges a request for a connection with so many bytes of private data. True: it is admitted, and its tenant
 * has been charged; once arrivals.h has what it needs, call accept_begin() or accept_refuse(). False: the
 * client has been answered: it asked a question, or was refused. @conn stays the caller's.
 */
bool accept_request(struct acceptor *a, struct rnic_conn *conn, const void *data, size_t size,
	uint64_t now_us, struct session_client *client, struct admit_result *admitted);

/** Refuses a client that was admitted, and refunds its tenant. */
void accept_refuse(struct acceptor *a, const struct session_client *client,
	const struct admit_result *admitted, uint64_t now_us, const struct reddn_wire_rej *rej);

/**
 * Returns a session that runs and owns the connection, but has no answer and no RECVs yet: post them, then
 * call accept_answer(). NULL: the client has been refused.
 */
struct session *accept_begin(struct acceptor *a, const struct session_client *client,
	const struct admit_result *admitted, uint64_t now_us);

/** Accepts the connection of @s, with what its client needs to know. -errno: @s cannot be used. */
int accept_answer(struct session *s);
/** Then waits until the NIC has begun with its queues: it is SESSION_ACCEPTED. -errno: the same. */
int accept_begun(struct session *s);

#endif
