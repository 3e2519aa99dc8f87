/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - one client: its queues, its ring of armed instances, its connection.
 *
 * Instances are numbered from 0. Of N slots, instances [done, done + N) are armed, and RECVs [0, done + N - 1) posted:
 * an instance enables the head of its successor, which therefore must be armed first.
 *
 * Thread rules: one thread. Nothing here is on the path of a request.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "reddnd/rnic/cm.h"
#include "reddnd/session/audit.h"
#include "reddnd/session/layout.h"
#include "reddnd/session/offload.h"
#include "reddnd/session/request.h"
#include "reddnd/session/starter.h"

#include <sys/queue.h>
#include <uthash.h>

struct session {
	uint64_t id; /* > 0 */
	uint32_t qpn;
	const struct offload *offload;
	struct rnic_conn *conn;
	struct audit *audit;
	struct audit_cq *audit_cq;
	uint32_t charge;
	struct session_layout layout;
	struct rnic_block block;
	struct rnic_cq cq[CHAIN_MAX_QUEUES]; /* [0]: RECVs; others: SQ of the code queue */
	struct rnic_qp qp[CHAIN_MAX_QUEUES];
	struct chain_env env;
	uint64_t done, armed;
	uint32_t tail; /* WQEBBs from the start of the last WQE of a reply to the end of it */
	unsigned false_alarms;
	bool established;
	bool ended; /* to be freed; nothing it still does matters */
	bool dirty; /* instances finished that are not armed again */
	TAILQ_ENTRY(session) dirty_link;
	UT_hash_handle by_id, by_qpn; /* of the server */
};

/** What sessions are made from. */
struct session_parts {
	struct rnic_device *dev;
	struct rnic_arena *arena;
	struct audit *audit;
	struct starter *starter;
};

/** Events carry cookies: the session, and which of its queues (CQ of queue q, or its QP). 0 is the audit's. */
enum { SESSION_COOKIE_BITS = 8, SESSION_COOKIE_QP = 0x80 };

/**
 * Makes the queues, arms every instance, and connects: after this a request can be answered. Ownership of @conn passes
 * in any case of success. Fails with -ENOSPC, -ENOMEM or what the device says; errors of the device have been logged.
 */
int session_new(struct session **s, uint64_t id, const struct session_parts *parts,
	const struct offload *offload, const struct session_request *request, struct rnic_conn *conn);

/** Stops the queues and disconnects the client, in that order: after its event nothing is written to it. */
void session_end(struct session *s);
/** Destroys the queue pairs: no CQE of theirs is written after this. Empty the audit's queues before others are made. */
void session_stop_queues(struct session *s);
void session_free(struct session *s);

/**
 * The CQE of a reply. 0, or a positive value when it means the end of the session: @why says so in words.
 */
int session_completed(struct session *s, const struct rnic_cqe *cqe, char *why, size_t size);

/** Eighths of its instances that are finished and not armed again, rounded down: 8 is a client that has to wait. */
unsigned session_used(const struct session *s);

/** Arms what is finished and lets the client use it. Positive as above. */
int session_rearm(struct session *s, char *why, size_t size);

/** The event of queue @part (see cookies) came. Positive as above. */
int session_alarm(struct session *s, unsigned part, char *why, size_t size);

/** What the client has to know, for the accept. */
void session_describe(const struct session *s, struct reddn_wire_rep *rep);

#endif
